/**
 * What stores of objects have to do besides the contract of every store, since a bucket has no
 * directories and is listed page by page.
 */
import { buffer } from "node:stream/consumers";
import { describe, expect, test } from "vitest";
import type { ArtifactStore } from "../../../worker/artifacts/store.ts";
import {
  type FailingObjectStore,
  describeObjectStoreFailures,
  largeBytes,
} from "./object-store/failures.ts";
import { contentOf } from "./object-store/saving.ts";
import type { SeededVersion } from "./object-store/seeded.ts";
import { never, newScope, readText, saveText, sourceOf, streamOf, text } from "./under-test.ts";

/** A store of objects under test. */
export interface ObjectStoreOptions {
  /** Makes a store that works; the test disposes it. */
  readonly create: () => Promise<ArtifactStore>;
  /** Puts objects into the bucket, behind the store's back. */
  readonly seed: (versions: readonly SeededVersion[]) => Promise<void>;
  /** Objects of a long listing, which has several pages; 2,500 by default. */
  readonly listed?: number;
  /** What goes wrong on command. */
  readonly failures?: FailingObjectStore;
}

/** Names that mean something in URLs, forms, XML or paths, and the longest ones. */
const names = [
  " padded ",
  "#fragment",
  "%",
  "%2F",
  "%e2%28%a1",
  "'quoted' \"twice\"",
  "*",
  "+",
  "<a>&amp;",
  "?query=1&x",
  "Quarterly report (final) v2.xlsx",
  "\\",
  "a b+c%20d#e.txt",
  "a!$&'()*,;=:@~^`{|}[]",
  "n".repeat(255),
  "naïve café.txt",
  "年".repeat(85),
  "👩‍🔬.json",
];

/**
 * Describes a store as vitest tests, beside `describeArtifactStore`. Stores may share a bucket:
 * every test has scopes of its own.
 */
export function describeObjectStore(name: string, options: ObjectStoreOptions): void {
  const { create, seed, listed = 2_500, failures } = options;
  describe(`object store: ${name}`, () => {
    test(
      "32 savers of one name get versions of their own, and keep their content",
      { tags: "full" },
      async () => {
        await using store = await create();
        const scope = newScope();
        const contents = Array.from({ length: 32 }, (_, index) => `content ${index}`);
        const saved = await Promise.all(
          contents.map((content) => saveText(store, scope, "a.txt", content)),
        );
        const versions = saved.map(({ version }) => version);
        expect(new Set(versions).size).toBe(32);
        const listing = await store.versions(scope, "a.txt", never);
        expect(listing).toEqual(versions.toSorted((a, b) => a - b));
        const read = versions.map((version) => readText(store, scope, "a.txt", version));
        expect(await Promise.all(read)).toEqual(contents);
      },
    );

    describe("savers of several parts of one name get versions of their own", () => {
      async function save(savers: number): Promise<void> {
        await using store = await create();
        const scope = newScope();
        // Made anew each time, since all together are large.
        const contentBy = (saver: number): Buffer => Buffer.alloc(largeBytes, `content ${saver} `);
        const saved = await Promise.all(
          Array.from({ length: savers }, (_, saver) => {
            const open = () => streamOf([contentBy(saver)]);
            const source = { sizeBytes: largeBytes, open };
            return store.save(scope, "a.bin", source, text, never);
          }),
        );
        const listing = await store.versions(scope, "a.bin", never);
        expect(saved.map(({ version }) => version).toSorted((a, b) => a - b)).toEqual(listing);
        expect(listing).toHaveLength(savers);
        for (const [saver, { version }] of saved.entries()) {
          const { body } = await store.open(scope, { filename: "a.bin", version }, never);
          expect((await buffer(body)).equals(contentBy(saver))).toBe(true);
        }
        // Nothing but the versions: no parts of an upload that lost its version to another.
        if (failures !== undefined) expect(failures.kept(scope.root)).toHaveLength(savers);
      }

      test("two at once", { timeout: 120_000 }, () => save(2));

      test("32 at once", { tags: "full" }, () => save(32));
    });

    test(
      "versions are listed over several pages, and the latest is found",
      { tags: "full" },
      async () => {
        await using store = await create();
        const [scope, filename] = [newScope(), "a.txt"];
        const versions = [...Array(listed).keys()];
        await seed(
          versions.map((version) => ({ scope, filename, version, content: `${version}` })),
        );
        expect(await store.versions(scope, filename, never)).toEqual(versions);
        expect(await readText(store, scope, filename)).toBe(String(listed - 1));
        expect(await saveText(store, scope, filename, "next")).toMatchObject({ version: listed });
      },
    );

    test("names are listed over several pages", async () => {
      await using store = await create();
      const scope = newScope();
      const filenames = Array.from({ length: listed }, (_, index) => `report ${10_000 + index}`);
      await seed(filenames.map((filename) => ({ scope, filename, version: 0, content: "a" })));
      expect(await store.names(scope, never)).toEqual(filenames);
    });

    test("names with special characters and of any length come back as they are", async () => {
      await using store = await create();
      const scope = newScope({ userId: "ann+50%#@example.com", sessionId: "a b&c" });
      for (const filename of names) await saveText(store, scope, filename, filename);
      expect(await store.names(scope, never)).toEqual(names.toSorted());
      for (const filename of names) {
        expect(await store.versions(scope, filename, never)).toEqual([0]);
        expect(await readText(store, scope, filename)).toBe(filename);
      }
    });

    test("content of several parts comes back byte by byte", { tags: "full" }, async () => {
      await using store = await create();
      const [scope, content] = [newScope(), contentOf(largeBytes)];
      await store.save(scope, "a.bin", sourceOf(content), text, never);
      const { body } = await store.open(scope, { filename: "a.bin", version: 0 }, never);
      expect((await buffer(body)).equals(content)).toBe(true);
    });

    if (failures !== undefined) describeObjectStoreFailures(create, failures);
  });
}
