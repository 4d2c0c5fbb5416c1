/**
 * How many calls a second workers serve: predicted by what one call costs, and measured.
 */
import { cpus } from "node:os";
import type { BrokerKind } from "../brokers.ts";
import { makeBase, startTimeoutMs } from "../environment.ts";
import { brokers } from "../names.ts";
import { forkBroker } from "./broker.ts";
import { type Calibration, calibrate } from "./calibrate.ts";
import { kinds, lightKind } from "./kinds.ts";
import type { SizingOptions } from "./options.ts";
import { type Saturation, saturate } from "./saturate.ts";

/** How many workers share calls, one after the other. */
const workerCounts = [1, 2, 4];

/** Results for one kind of tools. */
export interface MeasuredKind {
  readonly name: string;
  readonly calibration: Calibration;
  readonly saturations: readonly Saturation[];
}

/** Results of a sizing. */
export interface MeasuredSizing {
  readonly broker: BrokerKind;
  readonly workDirs: string;
  readonly kinds: readonly MeasuredKind[];
  /** Of a light tool, through each broker. */
  readonly brokers: readonly { readonly broker: BrokerKind; readonly calibration: Calibration }[];
}

/** Calibrates each kind with one worker, then measures one, two and four workers. */
export async function measureSizing(options: SizingOptions): Promise<MeasuredSizing> {
  await using base = await makeBase();
  const ofDev = await calibrateLight(base.path);
  await using broker = await forkBroker(options.broker, AbortSignal.timeout(startTimeoutMs));
  const measured: MeasuredKind[] = [];
  const ofBroker: Calibration[] = [];
  for (const kind of kinds) {
    const rig = { broker, base: base.path, kind };
    console.error(`calibrating ${kind.name}`);
    const calibration = await calibrate(rig);
    if (kind === lightKind) ofBroker.push(calibration);
    const saturations: Saturation[] = [];
    for (const workers of workerCounts) {
      console.error(`measuring ${workers} × ${kind.name}`);
      saturations.push(await saturate({ ...rig, workers }, cpus().length));
    }
    measured.push({ name: kind.name, calibration, saturations });
  }
  return {
    ...{ broker: options.broker, workDirs: base.kind, kinds: measured },
    brokers: [
      { broker: "dev", calibration: ofDev },
      ...ofBroker.map((calibration) => ({ broker: options.broker, calibration })),
    ],
  };
}

async function calibrateLight(base: string): Promise<Calibration> {
  await using broker = await forkBroker("dev", AbortSignal.timeout(startTimeoutMs));
  console.error(`calibrating ${lightKind.name}, ${brokers.dev}`);
  return await calibrate({ broker, base, kind: lightKind });
}
