/**
 * Requests of the operations, as docs/artifacts.md has them under "Requests": a server bills them.
 */
import { describe, expect, onTestFinished, test } from "vitest";
import type { ArtifactScope, ArtifactStore } from "../../../../worker/artifacts/store.ts";
import { contentOf } from "../../../conformance/artifacts/object-store/saving.ts";
import {
  never,
  newScope,
  readText,
  saveText,
  sourceOf,
  text,
} from "../../../conformance/artifacts/under-test.ts";
import { gcsStore, useFakeGcs } from "../../../support/gcs.ts";
import { startProxy } from "../../../support/objects/proxy.ts";
import { s3Store, useFakeS3 } from "../../../support/s3.ts";

const buckets = ["artifacts"];
const s3 = useFakeS3({ buckets });
const s3WithoutConditions = useFakeS3({ buckets, ignoresConditions: true });
const gcs = useFakeGcs({ buckets });

const MiB = 1024 * 1024;

/** Parts of the large file. */
const parts = 3;

const s3PartBytes = 5 * MiB;

const kinds = [
  {
    name: "S3",
    open: (url: string) => s3Store(url, "artifacts"),
    endpoint: () => s3().endpoint,
    partBytes: s3PartBytes,
    wanted: { loadEmpty: 1, saveSmall: 2, saveLarge: 1 + parts + 6 },
  },
  {
    name: "S3 without conditions",
    open: (url: string) => s3Store(url, "artifacts"),
    endpoint: () => s3WithoutConditions().endpoint,
    partBytes: s3PartBytes,
    wanted: { loadEmpty: 1, saveSmall: 2 + 6, saveLarge: 1 + parts + 6 + 2 },
  },
  {
    name: "Cloud Storage",
    open: (url: string) => gcsStore(url, "artifacts"),
    endpoint: () => gcs().endpoint,
    partBytes: 8 * MiB,
    wanted: { loadEmpty: 2, saveSmall: 2, saveLarge: 1 + parts + 4 },
  },
];

describe.for(kinds)("in $name", ({ name, open, endpoint, partBytes, wanted }) => {
  /** A store whose server knows its name, and what counts the requests of an operation. */
  async function openCounted() {
    let requests = 0;
    const url = await startProxy(endpoint(), () => {
      requests++;
      return "forward";
    });
    const store = open(url);
    onTestFinished(() => store[Symbol.asyncDispose]());
    const requestsOf = async (operation: () => Promise<unknown>): Promise<number> => {
      const before = requests;
      await operation();
      return requests - before;
    };
    return { store, requestsOf };
  }

  /** As above, of a worker that has started. */
  async function openStarted() {
    const opened = await openCounted();
    await opened.store.check(never);
    return opened;
  }

  const save = (store: ArtifactStore, scope: ArtifactScope, sizeBytes: number) =>
    store.save(scope, "a.bin", sourceOf(contentOf(sizeBytes)), text, never);

  test("a start has the check and, for the conditions, eight more; later checks have one", async () => {
    const { store, requestsOf } = await openCounted();
    const ofStart = await requestsOf(() => store.check(never));
    // Where several creators succeed, all is known.
    expect(ofStart).toBe(1 + (name === "S3 without conditions" ? 5 : 8));
    expect(await requestsOf(() => store.check(never))).toBe(1);
  });

  test("a load of the latest version lists, and opens; one by its number opens", async () => {
    const { store, requestsOf } = await openStarted();
    const scope = newScope();
    const { version } = await saveText(store, scope, "a.txt", "content");
    expect(await requestsOf(() => readText(store, scope, "a.txt"))).toBe(2);
    expect(await requestsOf(() => readText(store, scope, "a.txt", version))).toBe(1);
    const statOf = (wanted: number | undefined) => () =>
      store.stat(scope, { filename: "a.txt", version: wanted }, never);
    expect(await requestsOf(statOf(undefined))).toBe(2);
    expect(await requestsOf(statOf(version))).toBe(1);
  });

  test(`a load of an empty file: ${wanted.loadEmpty}`, async () => {
    const { store, requestsOf } = await openStarted();
    const scope = newScope();
    await saveText(store, scope, "a.txt", "");
    const load = () => readText(store, scope, "a.txt", 0);
    expect(await requestsOf(load)).toBe(wanted.loadEmpty);
  });

  test(`a save of a small file: ${wanted.saveSmall}`, async () => {
    const { store, requestsOf } = await openStarted();
    expect(await requestsOf(() => save(store, newScope(), partBytes))).toBe(wanted.saveSmall);
  });

  test(`a save of a large file of three parts: ${wanted.saveLarge}`, { tags: "full" }, async () => {
    const { store, requestsOf } = await openStarted();
    const sizeBytes = (parts - 1) * partBytes + 1;
    expect(await requestsOf(() => save(store, newScope(), sizeBytes))).toBe(wanted.saveLarge);
  });

  test("a deletion asks for the facts before; names are two listings", async () => {
    const { store, requestsOf } = await openStarted();
    const scope = newScope();
    const saved = await saveText(store, scope, "a.txt", "content");
    expect(await requestsOf(() => store.names(scope, never))).toBe(2);
    const remove = () => store.deleteVersion(scope, "a.txt", saved, never);
    expect(await requestsOf(remove)).toBe(2);
  });
});
