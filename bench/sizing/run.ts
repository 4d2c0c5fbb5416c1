/**
 * How many calls a second workers serve: predicted by what one call costs, and measured.
 */
import { cpus } from "node:os";
import type { BrokerKind } from "../brokers.ts";
import { makeBase, startTimeoutMs } from "../environment.ts";
import { brokers } from "../names.ts";
import { forkBroker } from "./broker.ts";
import { type Calibration, calibrate } from "./calibrate.ts";
import { type Kind, kinds, lightKind } from "./kinds.ts";
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

/** Calibrates every kind with one worker, then measures one, two and four workers. */
export async function measureSizing(options: SizingOptions): Promise<MeasuredSizing> {
  await using base = await makeBase();
  const calibrations = await calibrateAll(options.broker, base.path);
  const ofDev = await calibrateAll("dev", base.path, [lightKind]);
  const light = calibrations.filter(({ kind }) => kind === lightKind);
  const measured: MeasuredKind[] = [];
  await using broker = await forkBroker(options.broker, AbortSignal.timeout(startTimeoutMs));
  for (const { kind, calibration } of calibrations) {
    const saturations: Saturation[] = [];
    for (const workers of workerCounts) {
      const rig = { broker, base: base.path, kind, workers };
      console.error(`measuring ${workers} × ${kind.name}`);
      saturations.push(await saturate(rig, cpus().length));
    }
    measured.push({ name: kind.name, calibration, saturations });
  }
  return {
    ...{ broker: options.broker, workDirs: base.kind, kinds: measured },
    brokers: [
      ...ofDev.map(({ calibration }) => ({ broker: "dev" as const, calibration })),
      ...light.map(({ calibration }) => ({ broker: options.broker, calibration })),
    ],
  };
}

async function calibrateAll(
  kind: BrokerKind,
  base: string,
  tools: readonly Kind[] = kinds,
): Promise<readonly { readonly kind: Kind; readonly calibration: Calibration }[]> {
  await using broker = await forkBroker(kind, AbortSignal.timeout(startTimeoutMs));
  const calibrations = [];
  for (const tool of tools) {
    console.error(`calibrating ${tool.name}, ${brokers[kind]}`);
    calibrations.push({ kind: tool, calibration: await calibrate({ broker, base, kind: tool }) });
  }
  return calibrations;
}
