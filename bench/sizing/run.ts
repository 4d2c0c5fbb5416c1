/**
 * How many calls a second workers serve: predicted by what one call costs, and measured.
 */
import { cpus } from "node:os";
import type { BrokerKind } from "../brokers.ts";
import { makeBase, startTimeoutMs } from "../environment.ts";
import { brokers } from "../names.ts";
import { type ForkedBroker, forkBroker } from "./broker.ts";
import {
  type Calibration,
  type ProcessorCosts,
  calibrate,
  meanCosts,
  measureProcessors,
} from "./calibrate.ts";
import { type Kind, kinds, lightKind } from "./kinds.ts";
import type { CallCosts } from "./model.ts";
import type { SizingOptions } from "./options.ts";
import { type Saturation, saturate } from "./saturate.ts";

/** How many workers share calls, one after the other. */
const workerCounts = [1, 2, 4];

/** What one worker's calls cost. */
export interface MeasuredCosts {
  readonly calibration: Calibration;
  readonly costs: CallCosts;
}

/** What so many workers answered, and what a call cost before and after that. */
export interface MeasuredSaturation extends Saturation {
  readonly costs: CallCosts;
}

/** Results for one kind of tools; the costs are means of all measurements. */
export interface MeasuredKind extends MeasuredCosts {
  readonly name: string;
  readonly saturations: readonly MeasuredSaturation[];
}

/** Results of a sizing. */
export interface MeasuredSizing {
  readonly broker: BrokerKind;
  readonly workDirs: string;
  readonly kinds: readonly MeasuredKind[];
  /** Of a light tool, through each broker. */
  readonly brokers: readonly (MeasuredCosts & { readonly broker: BrokerKind })[];
}

/** Measures one, two and four workers for each kind, and between them what a call costs. */
export async function measureSizing(options: SizingOptions): Promise<MeasuredSizing> {
  await using base = await makeBase();
  const ofDev = await measureLight(base.path);
  await using broker = await forkBroker(options.broker, AbortSignal.timeout(startTimeoutMs));
  const measured: MeasuredKind[] = [];
  for (const kind of kinds) measured.push(await measureKind({ broker, base: base.path, kind }));
  const light = measured.filter(({ name }) => name === lightKind.name);
  return {
    ...{ broker: options.broker, workDirs: base.kind, kinds: measured },
    brokers: [
      { broker: "dev", ...ofDev },
      ...light.map(({ calibration, costs }) => ({ broker: options.broker, calibration, costs })),
    ],
  };
}

async function measureKind(rig: SizedRig): Promise<MeasuredKind> {
  const { name } = rig.kind;
  console.error(`calibrating ${name}`);
  const calibration = await calibrate(rig);
  const { slotSeconds, templateSeconds } = calibration;
  const withTimes = (costs: ProcessorCosts) => ({ slotSeconds, templateSeconds, ...costs });
  const all = [await measureProcessors(rig, calibration)];
  const saturations: MeasuredSaturation[] = [];
  for (const workers of workerCounts) {
    console.error(`measuring ${workers} × ${name}`);
    const saturation = await saturate({ ...rig, workers }, cpus().length);
    all.push(await measureProcessors(rig, calibration));
    saturations.push({ ...saturation, costs: withTimes(meanCosts(all.slice(-2))) });
  }
  return { name, calibration, costs: withTimes(meanCosts(all)), saturations };
}

async function measureLight(base: string): Promise<MeasuredCosts> {
  await using broker = await forkBroker("dev", AbortSignal.timeout(startTimeoutMs));
  console.error(`calibrating ${lightKind.name}, ${brokers.dev}`);
  const rig = { broker, base, kind: lightKind };
  const calibration = await calibrate(rig);
  const { slotSeconds, templateSeconds } = calibration;
  const costs = await measureProcessors(rig, calibration);
  return { calibration, costs: { slotSeconds, templateSeconds, ...costs } };
}

interface SizedRig {
  readonly broker: ForkedBroker;
  readonly base: string;
  readonly kind: Kind;
}
