/**
 * Times rows of a benchmark so that they can be compared: a round runs each row once, so a busy
 * moment of the machine hits all of them alike.
 */
import type { StartKind } from "../worker/protocol/execution.ts";

/** Calls of a row at once when its throughput is taken. */
export const inFlight = 4;
/** Rounds before those that count, unless told otherwise. */
const defaultWarmUpRounds = 5;
/** Milliseconds for which a row's throughput is taken, for each round and at least. */
const saturationMs = { perRound: 15, min: 300 };
/** Calls that it is taken of at least, however long they take. */
const minSaturationCalls = 2 * inFlight;
/** Milliseconds of the same before that, as a part of it, until what had waited is used up. */
const leadIn = 1 / 3;

/**
 * What a row is of, for those who draw it. `loop` is the event loop of a worker, `batch` are many
 * calls.
 */
export type RowKind = "floor" | StartKind | "loop" | "batch";

/**
 * How calls came to their sandboxes: to one that waited, to one made of a template for them, to one
 * made of nothing.
 */
export interface StartCounts {
  readonly hits: number;
  readonly misses: number;
  readonly cold: number;
}

/** One run of a row. */
export interface Timing {
  readonly elapsedMs: number;
  /** How the call started, for a row of calls. */
  readonly start?: StartKind;
}

/** One thing that is timed. */
export interface Row {
  readonly name: string;
  readonly kind: RowKind;
  /**
   * Does it once. Called one at a time, and for the throughput {@link inFlight} at a time, unless
   * that says nothing of the row: `isAlone`.
   */
  run(): Promise<Timing>;
  readonly isAlone?: boolean;
  /**
   * Calls so far that found a sandbox waiting, where those that did not may have been given one of
   * the same kind.
   */
  hits?(): Promise<number>;
  /** Bytes of memory that only one sandbox that waits has. */
  parkedBytes?(): Promise<number | undefined>;
}

/**
 * What was measured of a row; times in milliseconds. What runs of old did not measure is missing in
 * their files.
 */
export interface Measurement {
  readonly name: string;
  readonly kind?: RowKind;
  readonly medianMs: number;
  readonly p90Ms: number;
  readonly p99Ms: number;
  readonly maxMs?: number;
  readonly callsPerSecond?: number | undefined;
  /** How the timed calls came to their sandboxes, and those of the throughput. */
  readonly timedStarts?: StartCounts | undefined;
  readonly saturatedStarts?: StartCounts | undefined;
  readonly parkedBytes?: number | undefined;
}

/** Times something; what it answers is how the call started. */
export function timed(run: () => Promise<StartKind | undefined>): () => Promise<Timing> {
  return async () => {
    const startMs = performance.now();
    const start = await run();
    return timingSince(startMs, start);
  };
}

/** What ends now. */
export function timingSince(startMs: number, start: StartKind | undefined): Timing {
  const elapsedMs = performance.now() - startMs;
  return start === undefined ? { elapsedMs } : { elapsedMs, start };
}

/**
 * Measures all rows over `rounds` rounds one call at a time, then each row's throughput.
 *
 * @param whenQuiet fulfils when as many sandboxes wait as should, and none is being made
 */
export async function measure(
  rows: readonly Row[],
  rounds: number,
  whenQuiet: () => Promise<void>,
  warmUpRounds = defaultWarmUpRounds,
): Promise<readonly Measurement[]> {
  const series = rows.map((row) => new Series(row));
  for (let round = -warmUpRounds; round < rounds; round++) {
    // What a row leaves behind is not always met by the same one.
    for (const one of round % 2 === 0 ? series : series.toReversed()) {
      await whenQuiet();
      await one.take(round >= 0);
    }
  }
  const measurements: Measurement[] = [];
  for (const one of series) {
    await whenQuiet();
    const measurement = await one.measurement();
    measurements.push({ ...measurement, ...(await saturate(one.row, rounds)) });
  }
  return measurements;
}

/** What was taken of one row so far. */
class Series {
  readonly row: Row;
  readonly #timesMs: number[] = [];
  #starts = noStarts;

  constructor(row: Row) {
    this.row = row;
  }

  /** Runs the row once. */
  async take(counts: boolean): Promise<void> {
    const tally = await Tally.begin(this.row);
    const timing = await this.row.run();
    tally.add(timing);
    const starts = await tally.end();
    if (!counts) return;
    this.#timesMs.push(timing.elapsedMs);
    this.#starts = plus(this.#starts, starts ?? noStarts);
  }

  async measurement(): Promise<Measurement> {
    const { name, kind } = this.row;
    const sorted = this.#timesMs.toSorted((a, b) => a - b);
    return {
      name,
      kind,
      medianMs: quantile(sorted, 0.5),
      p90Ms: quantile(sorted, 0.9),
      p99Ms: quantile(sorted, 0.99),
      maxMs: quantile(sorted, 1),
      timedStarts: isWarm(this.row) ? this.#starts : undefined,
      parkedBytes: await this.row.parkedBytes?.(),
    };
  }
}

/**
 * A row's throughput when as much of it runs as can, and how its calls came to their sandboxes
 * then.
 */
async function saturate(
  row: Row,
  rounds: number,
): Promise<Pick<Measurement, "callsPerSecond" | "saturatedStarts">> {
  if (row.isAlone === true) return {};
  let tally = await Tally.begin(row);
  let isOver = false;
  const lanes = Array.from({ length: inFlight }, async () => {
    while (!isOver) tally.add(await row.run());
  });
  const work = Promise.all(lanes);
  const lengthMs = Math.max(saturationMs.perRound * rounds, saturationMs.min);
  try {
    await sleepBeside(leadIn * lengthMs, work);
    tally = await Tally.begin(row);
    const startMs = performance.now();
    do await sleepBeside(lengthMs, work);
    while (tally.calls < minSaturationCalls);
    const callsPerSecond = (tally.calls * 1000) / (performance.now() - startMs);
    return { callsPerSecond, saturatedStarts: await tally.end() };
  } finally {
    isOver = true;
    await work;
  }
}

/** Waits while work goes on; rejects when that does. */
async function sleepBeside(ms: number, work: Promise<unknown>): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  setTimeout(resolve, ms);
  await Promise.race([promise, work]);
}

/** Counts the calls of a row from now on. */
class Tally {
  readonly #row: Row;
  readonly #hitsBefore: number | undefined;
  #calls = 0;
  #cold = 0;

  private constructor(row: Row, hitsBefore: number | undefined) {
    this.#row = row;
    this.#hitsBefore = hitsBefore;
  }

  static async begin(row: Row): Promise<Tally> {
    return new Tally(row, await row.hits?.());
  }

  get calls(): number {
    return this.#calls;
  }

  add({ start }: Timing): void {
    this.#calls++;
    if (start === "cold") this.#cold++;
  }

  /** How they started; undefined for a row whose calls all start alike. */
  async end(): Promise<StartCounts | undefined> {
    if (!isWarm(this.#row)) return undefined;
    const warm = this.#calls - this.#cold;
    const hits = ((await this.#row.hits?.()) ?? warm) - (this.#hitsBefore ?? 0);
    // Those on their way have found theirs and are no calls yet.
    const counted = Math.min(hits, warm);
    return { hits: counted, misses: warm - counted, cold: this.#cold };
  }
}

function isWarm({ kind }: Row): boolean {
  return kind === "pool" || kind === "template";
}

const noStarts: StartCounts = { hits: 0, misses: 0, cold: 0 };

function plus(a: StartCounts, b: StartCounts): StartCounts {
  return { hits: a.hits + b.hits, misses: a.misses + b.misses, cold: a.cold + b.cold };
}

/** The least of the sorted values that a part `q` of them does not exceed (nearest rank). */
export function quantile(sorted: readonly number[], q: number): number {
  return sorted[Math.max(0, Math.ceil(q * sorted.length) - 1)] ?? Number.NaN;
}
