import { expect, test, vi } from "vitest";
import { StoreWatch } from "../../../worker/artifacts/store-watch.ts";
import { StoreError } from "../../../worker/artifacts/store.ts";
import { createLogger } from "../../../worker/telemetry/logger.ts";

/** A clock whose sleeps end on command. */
function steppedClock() {
  let wake = Promise.withResolvers<void>();
  return {
    step: () => {
      const { resolve } = wake;
      wake = Promise.withResolvers<void>();
      resolve();
    },
    sleep: async (_ms: number, signal?: AbortSignal) => {
      const aborted = Promise.withResolvers<never>();
      signal?.addEventListener("abort", () => aborted.reject(signal.reason as Error));
      await Promise.race([wake.promise, aborted.promise]);
    },
  };
}

test("a store that goes away is a problem until it is back", async () => {
  const clock = steppedClock();
  let failure: Error | undefined;
  let checks = 0;
  const store = {
    check: () => {
      checks++;
      return failure === undefined ? Promise.resolve([]) : Promise.reject(failure);
    },
  };
  const log = createLogger("info", { write: () => undefined });
  await using watch = new StoreWatch({ store, clock, log });
  const next = async (): Promise<void> => {
    const before = checks;
    clock.step();
    await vi.waitFor(() => expect(checks).toBeGreaterThan(before));
  };
  await next();
  expect(watch.problems).toEqual([]);
  failure = new StoreError("unavailable", "The artifact store is away.");
  await next();
  await vi.waitFor(() => expect(watch.problems).toEqual(["The artifact store is away."]));
  failure = undefined;
  await next();
  await vi.waitFor(() => expect(watch.problems).toEqual([]));
});
