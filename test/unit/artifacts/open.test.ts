import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { openStore } from "../../../worker/artifacts/open.ts";
import { csv, never, readText, scope, sourceOf, temporaryDirectory } from "./fixtures.ts";

describe("opening a store", () => {
  test("of kind memory gives one that works", async () => {
    await using store = await openStore({ kind: "memory" });
    await store.save(scope, "a.csv", sourceOf("a"), csv, never);

    expect(store.kind).toBe("memory");
    expect(await readText(store, "a.csv")).toBe("a");
  });

  test("of kind filesystem gives one that keeps artifacts below its path", async () => {
    const basePath = join(await temporaryDirectory(), "base");
    await using store = await openStore({ kind: "filesystem", basePath });
    await store.check(never);
    await store.save(scope, "a.csv", sourceOf("a"), csv, never);
    await using another = await openStore({ kind: "filesystem", basePath });

    expect(store.kind).toBe("filesystem");
    expect(await readText(another, "a.csv")).toBe("a");
  });
});
