import { describe, expect, test } from "vitest";
import {
  createMemoryStore,
  versionOverheadBytes,
} from "../../../../worker/artifacts/memory/store.ts";
import { csv, never, readText, scope, sourceOf } from "../fixtures.ts";

const roomForTwo = { totalBytes: 2 * (100 + versionOverheadBytes) };
const hundredBytes = "x".repeat(100);

describe("a full memory store", () => {
  test("refuses what does not fit and keeps what it has", async () => {
    await using store = createMemoryStore(roomForTwo);
    await store.save(scope, "a.csv", sourceOf(hundredBytes), csv, never);
    await store.save(scope, "a.csv", sourceOf(hundredBytes), csv, never);

    await expect(store.save(scope, "b.csv", sourceOf("x"), csv, never)).rejects.toMatchObject({
      reason: "unavailable",
      message:
        'Artifact "b.csv" of session web-1 could not be saved: 1 bytes do not fit into the artifact store.',
    });
    expect(await readText(store, "a.csv", 1)).toBe(hundredBytes);
  });

  test("counts what is still arriving", async () => {
    await using store = createMemoryStore(roomForTwo);
    const saves = [1, 2, 3].map(() =>
      store.save(scope, "a.csv", sourceOf(hundredBytes), csv, never),
    );
    const results = await Promise.allSettled(saves);
    expect(results.map(({ status }) => status)).toEqual(["fulfilled", "fulfilled", "rejected"]);
  });

  test("counts empty artifacts too", async () => {
    await using store = createMemoryStore({ totalBytes: versionOverheadBytes });
    await store.save(scope, "a.csv", sourceOf(""), csv, never);
    await expect(store.save(scope, "a.csv", sourceOf(""), csv, never)).rejects.toMatchObject({
      reason: "unavailable",
    });
  });

  test("has the room of a failed save again", async () => {
    await using store = createMemoryStore(roomForTwo);
    const tooFew = { ...sourceOf(hundredBytes), sizeBytes: 200 };
    await expect(store.save(scope, "a.csv", tooFew, csv, never)).rejects.toMatchObject({
      reason: "unavailable",
    });
    await store.save(scope, "a.csv", sourceOf(hundredBytes), csv, never);
    await store.save(scope, "a.csv", sourceOf(hundredBytes), csv, never);
    expect(await store.versions(scope, "a.csv", never)).toEqual([0, 1]);
  });

  test("has the room of a deleted version again", async () => {
    await using store = createMemoryStore(roomForTwo);
    await store.save(scope, "a.csv", sourceOf(hundredBytes), csv, never);
    const saved = await store.save(scope, "a.csv", sourceOf(hundredBytes), csv, never);
    await store.deleteVersion(scope, "a.csv", saved, never);
    await store.save(scope, "a.csv", sourceOf(hundredBytes), csv, never);
    expect(await store.versions(scope, "a.csv", never)).toEqual([0, 1]);
  });

  test.for([-1, Number.NaN, Number.POSITIVE_INFINITY])(
    "refuses a source of %d bytes",
    async (sizeBytes) => {
      await using store = createMemoryStore();
      await expect(
        store.save(scope, "a.csv", { ...sourceOf("x"), sizeBytes }, csv, never),
      ).rejects.toMatchObject({ reason: "unavailable" });
    },
  );
});

test("a reader that writes into its chunks changes nothing in the store", async () => {
  await using store = createMemoryStore();
  await store.save(scope, "a.csv", sourceOf("content"), csv, never);

  const { body } = await store.open(scope, { filename: "a.csv", version: 0 }, never);
  for await (const chunk of body as AsyncIterable<Buffer>) chunk.fill(0);

  expect(await readText(store, "a.csv")).toBe("content");
});
