/**
 * The wait for a sandbox before an attack's call: it ends, whatever the worker makes of it.
 */
import { describe, expect, test } from "vitest";
import type { Readiness } from "../../../worker/doctor/attacks/attacked-worker.ts";
import { ReadinessWait } from "../../../worker/doctor/readiness.ts";

const signal = AbortSignal.any([]);
const never = { idle: 0, startMode: "template", failure: undefined } as const;

/** A wait on a clock that stands still but for the wait's own pauses, which are long. */
function waitFor(readiness: () => Readiness) {
  const clock = { nowMs: 0 };
  const wait = new ReadinessWait(
    {
      catalog: {
        resolve: () => ({ start: "template" }) as never,
        unavailable: () => undefined,
      },
      starts: { follow: () => undefined },
      readinessOf: readiness,
    },
    {
      monotonicMs: () => clock.nowMs,
      sleep: () => Promise.resolve(void (clock.nowMs += 500)),
    },
  );
  return { wait, clock };
}

describe("the wait for a sandbox", () => {
  test("is over when one waits", async () => {
    const { wait, clock } = waitFor(() => ({ ...never, idle: clock.nowMs > 2_000 ? 1 : 0 }));
    expect(await wait.until("a", signal)).toEqual({
      isReady: true,
      startMode: "template",
      problem: undefined,
    });
    expect(clock.nowMs).toBe(2_500);
  });

  test("is over with the reason after a few attempts that fail", async () => {
    const { wait, clock } = waitFor(() => ({
      ...never,
      failure: { attempts: Math.floor(clock.nowMs / 1_000), error: new Error("no filter") },
    }));
    expect(await wait.until("a", signal)).toMatchObject({ isReady: false, problem: "no filter" });
    expect(clock.nowMs).toBe(4_000);
  });

  test("is over at once where there is no way", async () => {
    const { wait, clock } = waitFor(() => ({ ...never, startMode: undefined }));
    expect(await wait.until("a", signal)).toMatchObject({ isReady: false, problem: undefined });
    expect(clock.nowMs).toBe(0);
  });

  test("takes a minute twice, and then two seconds", async () => {
    const { wait, clock } = waitFor(() => never);
    const tookMs: number[] = [];
    for (let round = 0; round < 4; round++) {
      const fromMs = clock.nowMs;
      expect(await wait.until("a", signal)).toMatchObject({ problem: "it takes too long" });
      tookMs.push(clock.nowMs - fromMs);
    }
    expect(tookMs).toEqual([60_000, 60_000, 2_000, 2_000]);
  });
});
