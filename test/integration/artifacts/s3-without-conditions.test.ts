/**
 * Savers of several workers on an S3 server that keeps no conditions.
 */
import { createHash } from "node:crypto";
import { text as textOf } from "node:stream/consumers";
import { Readable } from "node:stream";
import { describe, expect, onTestFinished, test } from "vitest";
import type { FaultKind } from "../../../harness/fakes/faults.ts";
import type { S3Operation } from "../../../harness/fakes/s3/request.ts";
import type { ArtifactStore } from "../../../worker/artifacts/store.ts";
import { s3Store, useFakeS3 } from "../../support/s3.ts";

const server = useFakeS3({ buckets: ["artifacts"], ignoresConditions: true });
const never = new AbortController().signal;
const scope = { root: "ed_test", userId: "user-42", sessionId: "web-1" };
const text = { mimeType: "text/plain" };

/** The store of a worker that has started. */
async function openWorker(): Promise<ArtifactStore> {
  const store = s3Store(server().endpoint, "artifacts");
  onTestFinished(() => store[Symbol.asyncDispose]());
  await store.check(never);
  return store;
}

function save(store: ArtifactStore, filename: string, content: string) {
  const bytes = Buffer.from(content);
  const source = { sizeBytes: bytes.byteLength, open: () => Readable.from([bytes]) };
  return store.save(scope, filename, source, text, never);
}

test("the check tells what is missing, and there are no marks", async () => {
  const store = s3Store(server().endpoint, "artifacts");
  onTestFinished(() => store[Symbol.asyncDispose]());
  const limits = await store.check(never);
  expect(limits).toEqual([expect.stringContaining("If-None-Match")]);
  expect(store.marks).toBeUndefined();
});

async function expectNothingLost(savers: number): Promise<void> {
  const workers = await Promise.all([openWorker(), openWorker(), openWorker(), openWorker()]);
  const contents = Array.from({ length: savers }, (_, index) => `content ${index}`);
  const saved = await Promise.all(
    contents.map((content, index) => save(workers[index % 4]!, "shared.txt", content)),
  );
  expect(new Set(saved.map(({ version }) => version)).size).toBe(savers);
  const read = saved.map(async ({ version }) => {
    const { body } = await workers[0].open(scope, { filename: "shared.txt", version }, never);
    return textOf(body);
  });
  expect(await Promise.all(read)).toEqual(contents);
  const keys = [...server().bucket("artifacts").objects.keys()];
  expect(keys.filter((key) => key.startsWith(".str-claims/"))).toEqual([]);
}

const title = "%d savers in four workers lose no content of one name, and leave no reservation";
test.for([4])(title, expectNothingLost);
// Each sees the announcements of all others, again and again.
test.for([8, 32])(title, { tags: "full" }, expectNothingLost);

test("a version whose saver was killed stays free, since its object may still arrive", async () => {
  const digest = createHash("sha256").update("ed_test/user-42/web-1/late.txt/0").digest("hex");
  const announcement = `.str-claims/versions/${digest}/of-a-killed-worker`;
  const noConditions = { ifNoneMatch: undefined, ifMatch: undefined };
  server().bucket("artifacts").put(announcement, Buffer.from("reserved"), {}, noConditions);
  expect(await save(await openWorker(), "late.txt", "own")).toMatchObject({ version: 1 });
});

describe("a save of a large file", () => {
  const denied: FaultKind = { kind: "error", status: 403, code: "AccessDenied" };
  const sizeBytes = 6 * 1024 * 1024;

  /** Requests go wrong until the test is over. */
  function fault(operation: S3Operation, kind: FaultKind): Disposable {
    const rule = server().fault({ operation, fault: kind, times: 100 });
    onTestFinished(() => rule[Symbol.dispose]());
    return rule;
  }

  /** Once the version is reserved and known to be free, requests go wrong. */
  function saveLarge(
    store: ArtifactStore,
    filename: string,
    onReserved: () => void = () => undefined,
  ) {
    const open = () => {
      onReserved();
      return Readable.from([Buffer.alloc(sizeBytes)]);
    };
    return store.save(scope, filename, { sizeBytes, open }, text, never);
  }

  function reservations(filename: string): readonly string[] {
    const keys = [...server().bucket("artifacts").objects.keys()];
    const versions = [0, 1].map((version) => `ed_test/user-42/web-1/${filename}/${version}`);
    const digests = versions.map((key) => createHash("sha256").update(key).digest("hex"));
    return keys.filter((key) => digests.some((digest) => key.includes(digest)));
  }

  test.for([
    ["the facts about it are denied", "HeadObject", denied],
    ["its reservation cannot be removed", "DeleteObject", denied],
    ["every answer to its end is lost", "CompleteMultipartUpload", { kind: "lose answer" }],
  ] as const)("is a success although %s", async ([, operation, kind], { task }) => {
    const store = await openWorker();
    const saving = saveLarge(store, task.id, () => fault(operation, kind));
    expect(await saving).toMatchObject({ version: 0 });
  });

  test("whose reservation gets no answer takes it back", async () => {
    const store = await openWorker();
    fault("PutObject", { kind: "lose answer" });
    await expect(saveLarge(store, "lost.bin")).rejects.toThrow("does not answer");
    expect(reservations("lost.bin")).toEqual([]);
  });

  test("whose end is lost leaves no reservation once it is known", async () => {
    const store = await openWorker();
    const end = { kind: "lose answer" } as const;
    await saveLarge(store, "known.bin", () => fault("CompleteMultipartUpload", end));
    expect(reservations("known.bin")).toEqual([]);
  });

  test("that the server refuses takes its reservation back", async () => {
    const store = await openWorker();
    using _denied = fault("UploadPart", denied);
    await expect(saveLarge(store, "refused.bin")).rejects.toThrow("denies access");
    expect(reservations("refused.bin")).toEqual([]);
  });

  test("that may still arrive keeps its version from others", async () => {
    const store = await openWorker();
    const cut = fault("CompleteMultipartUpload", { kind: "cut request" });
    await expect(saveLarge(store, "late.bin")).rejects.toThrow("does not answer");
    cut[Symbol.dispose]();
    expect(reservations("late.bin")).toHaveLength(1);
    expect(await save(store, "late.bin", "other")).toMatchObject({ version: 1 });
  });
});
