/**
 * Counts of operations on an artifact store, by how they end.
 */
import { expect, onTestFinished, test } from "vitest";
import { createFilesystemStore } from "../../../../worker/artifacts/filesystem/store.ts";
import { StoreError } from "../../../../worker/artifacts/store.ts";
import type { CallStore } from "../../../../worker/invocation/audit/audited-store.ts";
import { countedStore } from "../../../../worker/invocation/counted-store.ts";
import { InvocationError } from "../../../../worker/protocol/errors.ts";
import { systemClock } from "../../../../worker/support/clock.ts";
import { StoreCounts } from "../../../../worker/telemetry/metrics/store-counts.ts";
import { csv, never, scope, sourceOf, temporaryDirectory } from "../../artifacts/fixtures.ts";

/** A store whose opens fail as given, and what is counted of them. */
async function newCounted(open?: () => Promise<never>) {
  const store = createFilesystemStore({ basePath: await temporaryDirectory() });
  onTestFinished(() => store[Symbol.asyncDispose]());
  const counts = new StoreCounts();
  const used: CallStore = {
    open: open ?? store.open.bind(store),
    save: store.save.bind(store),
    deleteVersion: store.deleteVersion.bind(store),
  };
  return {
    counted: countedStore(used, counts, systemClock),
    ended: async () =>
      (await counts.samples.str_artifact_operations_total()).map(
        ({ labels, value }) => `${labels.operation} ${labels.outcome} ${value}`,
      ),
  };
}

test("an artifact that is not there is no failure of the store", async () => {
  const { counted, ended } = await newCounted();
  await counted.save(scope, "data.csv", sourceOf("a,b"), csv, never);
  const opening = counted.open(scope, { filename: "missing.csv", version: 0 }, never);
  await expect(opening).rejects.toMatchObject({ reason: "not-found" });
  expect(await ended()).toEqual(["save ok 1", "open refused 1"]);
});

test("an operation that its call stopped is cancelled", async () => {
  const stopped = AbortSignal.abort(new Error("the call is over"));
  const { counted, ended } = await newCounted(() => Promise.reject(stopped.reason as Error));
  const opening = counted.open(scope, { filename: "data.csv", version: 0 }, stopped);
  await expect(opening).rejects.toBe(stopped.reason);
  expect(await ended()).toEqual(["open cancelled 1"]);
});

test.for([
  ["failed", new StoreError("unavailable", "away")],
  ["failed", new Error("EIO")],
  ["refused", new StoreError("invalid-name", "no such name")],
  ["refused", new InvocationError("ARTIFACT_ERROR", "too large")],
] as const)("it has %s by %s", async ([outcome, error]) => {
  const { counted, ended } = await newCounted(() => Promise.reject(error));
  const opening = counted.open(scope, { filename: "data.csv", version: 0 }, never);
  await expect(opening).rejects.toBe(error);
  expect(await ended()).toEqual([`open ${outcome} 1`]);
});
