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
  startReference,
} from "./calibrate.ts";
import { type Kind, kinds, lightKind } from "./kinds.ts";
import type { CallCosts } from "./model.ts";
import type { SizingOptions } from "./options.ts";
import { type Saturation, Saturated } from "./saturate.ts";

/** How many workers share calls, one after the other. */
const workerCounts = [1, 2, 4];
/** Windows of each number of workers, between those of the reference. */
const rounds = 3;

/** What one worker's calls cost. */
export interface MeasuredCosts {
  readonly calibration: Calibration;
  readonly costs: CallCosts;
}

/** What so many workers answered, and what a call cost meanwhile. */
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
  const all: ProcessorCosts[] = [];
  const saturations: MeasuredSaturation[] = [];
  for (const workers of workerCounts) {
    console.error(`measuring ${workers} × ${name}`);
    const { costs, ...saturation } = await measureWorkers(rig, calibration, workers);
    all.push(...costs);
    saturations.push({ ...saturation, costs: withTimes(meanCosts(costs)) });
  }
  return { name, calibration, costs: withTimes(meanCosts(all)), saturations };
}

/** Workers with always enough calls, and in turn the reference, in windows of some seconds. */
async function measureWorkers(
  rig: SizedRig,
  calibration: Calibration,
  workers: number,
): Promise<Saturation & { readonly costs: readonly ProcessorCosts[] }> {
  await using reference = await startReference(rig);
  await using saturated = await Saturated.start({ ...rig, workers });
  const measure = () => measureProcessors(reference, rig.kind.busySlots, calibration);
  const costs = [await measure()];
  for (let round = 1; round <= rounds; round++) {
    await saturated.measure();
    costs.push(await measure());
  }
  return { ...saturated.result(cpus().length), costs };
}

async function measureLight(base: string): Promise<MeasuredCosts> {
  await using broker = await forkBroker("dev", AbortSignal.timeout(startTimeoutMs));
  console.error(`calibrating ${lightKind.name}, ${brokers.dev}`);
  const rig = { broker, base, kind: lightKind };
  const calibration = await calibrate(rig);
  const { slotSeconds, templateSeconds } = calibration;
  await using reference = await startReference(rig);
  const costs = await measureProcessors(reference, lightKind.busySlots, calibration);
  return { calibration, costs: { slotSeconds, templateSeconds, ...costs } };
}

interface SizedRig {
  readonly broker: ForkedBroker;
  readonly base: string;
  readonly kind: Kind;
}
