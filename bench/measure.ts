/**
 * Times rows of a benchmark so that they can be compared: a round runs each row once, so a busy moment of the machine
 * hits all of them alike.
 */

/** Calls of a row at once when its throughput is taken. */
export const inFlight = 4;
/** Rounds before those that count. */
const warmUpRounds = 5;

/** One thing that is timed. */
export interface Row {
  readonly name: string;
  /** Does it once. Called one at a time, and for the throughput {@link inFlight} at a time. */
  run(): Promise<unknown>;
}

/** What was measured of a row; times in milliseconds. */
export interface Measurement {
  readonly name: string;
  readonly medianMs: number;
  readonly p90Ms: number;
  readonly p99Ms: number;
  readonly callsPerSecond: number;
}

/** Measures all rows over `rounds` rounds one call at a time, then each row's throughput over as many calls. */
export async function measure(
  rows: readonly Row[],
  rounds: number,
): Promise<readonly Measurement[]> {
  const times = await timeRounds(rows, rounds);
  const measurements: Measurement[] = [];
  for (const [index, row] of rows.entries()) {
    const sorted = (times[index] ?? []).toSorted((a, b) => a - b);
    measurements.push({
      name: row.name,
      medianMs: quantile(sorted, 0.5),
      p90Ms: quantile(sorted, 0.9),
      p99Ms: quantile(sorted, 0.99),
      callsPerSecond: await throughput(row, rounds),
    });
  }
  return measurements;
}

async function timeRounds(rows: readonly Row[], rounds: number): Promise<readonly number[][]> {
  const times = rows.map((): number[] => []);
  for (let round = -warmUpRounds; round < rounds; round++) {
    for (const [index, row] of rows.entries()) {
      const startMs = performance.now();
      await row.run();
      if (round >= 0) times[index]?.push(performance.now() - startMs);
    }
  }
  return times;
}

async function throughput(row: Row, calls: number): Promise<number> {
  let left = calls;
  const startMs = performance.now();
  const lanes = Array.from({ length: inFlight }, async () => {
    while (left-- > 0) await row.run();
  });
  await Promise.all(lanes);
  return (calls * 1000) / (performance.now() - startMs);
}

function quantile(sorted: readonly number[], q: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * q))] ?? Number.NaN;
}
