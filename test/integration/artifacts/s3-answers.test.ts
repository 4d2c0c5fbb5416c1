/**
 * Answers of S3 servers that the store has to understand: conflicts, errors with status 200, other
 * regions, and checksums of other kinds or none.
 */
import { randomUUID } from "node:crypto";
import { buffer } from "node:stream/consumers";
import {
  CompleteMultipartUploadCommand,
  CreateMultipartUploadCommand,
  GetObjectCommand,
  S3Client,
  UploadPartCommand,
} from "@aws-sdk/client-s3";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import type { S3Operation } from "../../../harness/fakes/s3/request.ts";
import { type FakeS3Options, startFakeS3 } from "../../../harness/fakes/s3/server.ts";
import { layout } from "../../../worker/artifacts/s3/layout.ts";
import { artifactKey } from "../../../worker/artifacts/scope.ts";
import type { ArtifactScope, ArtifactStore } from "../../../worker/artifacts/store.ts";
import { contentOf } from "../../conformance/artifacts/object-store/saving.ts";
import {
  newScope,
  never,
  readText,
  refusal,
  saveText,
  sourceOf,
  text,
} from "../../conformance/artifacts/under-test.ts";
import { patience } from "../../support/patience.ts";
import { s3Store, useFakeS3 } from "../../support/s3.ts";

const bucket = "artifacts";
const server = useFakeS3({ buckets: [bucket] });
const MiB = 1024 * 1024;
/** As much as is saved in several requests. */
const severalPartsBytes = 5 * MiB + 4;

/** Bytes of a save, and the request that makes its version. */
const saves = [
  [10, "PutObject"],
  [severalPartsBytes, "CompleteMultipartUpload"],
] as const;

/** More than any store repeats a request. */
const always = 100;

function openStore(): ArtifactStore {
  const store = s3Store(server().endpoint, bucket);
  onTestFinished(() => store[Symbol.asyncDispose]());
  return store;
}

/** Requests are answered so until the test is over. */
function answers(operation: S3Operation, status: number, code: string, times = 1): void {
  const rule = server().fault({ operation, times, fault: { kind: "error", status, code } });
  onTestFinished(() => rule[Symbol.dispose]());
}

function save(store: ArtifactStore, scope: ArtifactScope, sizeBytes: number) {
  return store.save(scope, "a.bin", sourceOf(contentOf(sizeBytes)), text, never);
}

async function read(store: ArtifactStore, scope: ArtifactScope, version = 0): Promise<Buffer> {
  const { body } = await store.open(scope, { filename: "a.bin", version }, never);
  return buffer(body);
}

/** Keys of a scope's objects and of its unfinished uploads. */
function keptOf({ root }: ArtifactScope) {
  const { objects, uploads } = server().bucket(bucket);
  const keys = [...objects.keys(), ...Array.from(uploads.values(), ({ key }) => key)];
  return keys.filter((key) => key.startsWith(`${root}/`));
}

/** Which answers a save takes for a moment's, and makes one version all the same. */
const answered = [
  [409, "ConditionalRequestConflict", 1],
  [409, "OperationAborted", 1],
  [200, "InternalError", 1],
  [200, "SlowDown", 1],
  // As often as the SDK asks, which repeats every error of this status.
  [200, "PreconditionFailed", 4],
] as const;
/** With several parts, one of each status. */
const inEveryRun: readonly string[] = ["ConditionalRequestConflict", "InternalError"];

describe.for(answered)("a save that is answered %d %s", ([status, code, times]) => {
  async function makesOneVersion([sizeBytes, operation]: (typeof saves)[number]): Promise<void> {
    const [store, scope] = [openStore(), newScope()];
    answers(operation, status, code, times);
    expect(await save(store, scope, sizeBytes)).toMatchObject({ version: 0 });
    expect((await read(store, scope)).equals(contentOf(sizeBytes))).toBe(true);
    expect(keptOf(scope)).toHaveLength(1);
  }
  const title = "with %d bytes at %s makes one version";
  const [small, large] = saves;
  // Only an upload's end has errors with status 200.
  if (status !== 200) test.for([small])(title, makesOneVersion);
  const options = inEveryRun.includes(code) ? {} : { tags: "full" };
  test.for([large])(title, options, makesOneVersion);
});

test("an upload whose end is always answered with an error of status 200 leaves nothing", async () => {
  const [store, scope] = [openStore(), newScope()];
  answers("CompleteMultipartUpload", 200, "InternalError", always);
  const error = await refusal(save(store, scope, severalPartsBytes));
  expect(error.reason).toBe("unavailable");
  expect(keptOf(scope)).toEqual([]);
});

test("a save that ends before the server names its upload leaves none", async () => {
  const [store, scope] = [openStore(), newScope()];
  const held = Promise.withResolvers<undefined>();
  const fault = { kind: "hold answer", until: held.promise } as const;
  using _rule = server().fault({ operation: "CreateMultipartUpload", fault });
  const ending = new AbortController();
  const source = sourceOf(contentOf(severalPartsBytes));
  const saved = store.save(scope, "a.bin", source, text, ending.signal);
  await vi.waitFor(() => expect(keptOf(scope)).toHaveLength(1), patience);
  ending.abort(new Error("the worker shuts down"));
  await expect(saved).rejects.toThrow("the worker shuts down");
  held.resolve(undefined);
  await store[Symbol.asyncDispose]();
  expect(keptOf(scope)).toEqual([]);
});

test.for([
  [409, "ConditionalRequestConflict"],
  [409, "OperationAborted"],
] as const)("a mark that is answered %d %s is kept", async ([status, code]) => {
  const { marks } = openStore();
  const name = `${randomUUID().replaceAll("-", "")}.started`;
  answers("PutObject", status, code);
  expect(await marks!.create(name, Buffer.from("answer"), never)).toBe(true);
  expect(await marks!.create(name, Buffer.from("other"), never)).toBe(false);
});

describe("a server that does not implement", () => {
  test.for(saves)("what a save of %d bytes needs fails it", async ([sizeBytes, operation]) => {
    const [store, scope] = [openStore(), newScope()];
    answers(operation, 501, "NotImplemented", always);
    const error = await refusal(save(store, scope, sizeBytes));
    expect(error.message).toContain("the artifact store failed with status 501");
    expect(keptOf(scope)).toEqual([]);
  });

  test("conditions is used without them", async () => {
    const [store, scope] = [openStore(), newScope()];
    answers("PutObject", 501, "NotImplemented", 4);
    expect(await store.check(never)).toEqual([expect.stringContaining("If-None-Match")]);
    expect(store.marks).toBeUndefined();
    expect(await saveText(store, scope, "a.txt", "a")).toMatchObject({ version: 0 });
    expect(await readText(store, scope, "a.txt")).toBe("a");
  });
});

/** Starts a server of another kind for a test. */
async function other(options: Omit<FakeS3Options, "buckets">) {
  const started = await startFakeS3({ buckets: [bucket], ...options });
  onTestFinished(() => started[Symbol.asyncDispose]());
  return started;
}

/** Everything that a worker does with a store. */
async function useAll(store: ArtifactStore): Promise<void> {
  const scope = newScope();
  expect(await store.check(never)).toEqual([]);
  for (const [version, sizeBytes] of [0, 10, severalPartsBytes].entries()) {
    expect(await save(store, scope, sizeBytes)).toMatchObject({ version });
    expect((await read(store, scope, version)).equals(contentOf(sizeBytes))).toBe(true);
  }
  expect(await store.names(scope, never)).toEqual(["a.bin"]);
  const saved = await saveText(store, scope, "b.txt", "b");
  expect(await store.deleteVersion(scope, "b.txt", saved, never)).toBe(true);
  const name = `${randomUUID().replaceAll("-", "")}.started`;
  expect(await store.marks!.create(name, Buffer.from("answer"), never)).toBe(true);
  await store.marks!.touch(name, never);
  expect(await store.marks!.read(name, never)).toBeDefined();
}

describe("a bucket in another region than the store's", () => {
  const elsewhere = "its bucket is in another region";

  test("is used with its own", async () => {
    const { endpoint } = await other({ region: "eu-central-1" });
    await using store = s3Store(endpoint, bucket, { region: "eu-central-1" });
    await useAll(store);
  });

  test("is told by the signature that its server refuses", async () => {
    const { endpoint } = await other({ region: "eu-central-1" });
    await using store = s3Store(endpoint, bucket);
    const scope = newScope();
    for (const attempt of [
      () => store.check(never),
      () => store.versions(scope, "a.txt", never),
      () => readText(store, scope, "a.txt", 0),
      () => saveText(store, scope, "a.txt", "a"),
    ])
      expect((await refusal(attempt())).message).toContain(elsewhere);
  });

  test.for<[S3Operation, (store: ArtifactStore, scope: ArtifactScope) => Promise<unknown>]>([
    ["ListObjectsV2", (store) => store.check(never)],
    ["ListObjectsV2", (store, scope) => store.versions(scope, "a.bin", never)],
    ["GetObject", (store, scope) => read(store, scope)],
    ["HeadObject", (store, scope) => store.stat(scope, { filename: "a.bin", version: 0 }, never)],
    ["PutObject", (store, scope) => save(store, scope, 10)],
    ["CreateMultipartUpload", (store, scope) => save(store, scope, severalPartsBytes)],
  ])("is told by the address that %s is sent to", async ([operation, use]) => {
    const [store, scope] = [openStore(), newScope()];
    answers(operation, 301, "PermanentRedirect");
    expect((await refusal(use(store, scope))).message).toContain(elsewhere);
  });
});

describe("checksums", () => {
  /** Uploads as clients do that name an algorithm: the checksum is one of the parts' checksums. */
  async function uploadComposite(
    scope: ArtifactScope,
    parts: readonly Buffer[],
  ): Promise<S3Client> {
    const { endpoint, region } = server();
    const client = new S3Client({ endpoint, region, forcePathStyle: true });
    onTestFinished(() => client.destroy());
    const target = {
      Bucket: bucket,
      Key: `${layout.prefixesOf(artifactKey(scope, "a.bin"), "a.bin")[0]}0`,
    };
    const create = new CreateMultipartUploadCommand({ ...target, ChecksumAlgorithm: "CRC32" });
    const { UploadId } = await client.send(create);
    const sent = [];
    for (const [index, Body] of parts.entries()) {
      const number = { PartNumber: index + 1 };
      const part = new UploadPartCommand({ ...target, UploadId, ...number, Body });
      const { ETag, ChecksumCRC32 } = await client.send(part);
      sent.push({ ...number, ETag, ChecksumCRC32 });
    }
    const MultipartUpload = { Parts: sent };
    await client.send(new CompleteMultipartUploadCommand({ ...target, UploadId, MultipartUpload }));
    const get = new GetObjectCommand({ ...target, ChecksumMode: "ENABLED" });
    const { Body, ...facts } = await client.send(get);
    await Body?.transformToByteArray();
    expect(facts).toMatchObject({ ChecksumType: "COMPOSITE" });
    expect(facts.ChecksumCRC32).toMatch(/^[\w+/]{6}==-2$/);
    return client;
  }

  test("of an object's parts are not those of its content", async () => {
    const [store, scope, content] = [openStore(), newScope(), contentOf(severalPartsBytes)];
    await uploadComposite(scope, [content.subarray(0, 5 * MiB), content.subarray(5 * MiB)]);
    expect((await read(store, scope)).equals(content)).toBe(true);
    const fault = { kind: "cut answer", afterBytes: MiB } as const;
    const rule = server().fault({ operation: "GetObject", fault });
    onTestFinished(() => rule[Symbol.dispose]());
    expect((await read(store, scope)).equals(content)).toBe(true);
  });

  test("are left out for a server that refuses them", async () => {
    const { endpoint } = await other({ refusesChecksums: true });
    await using store = s3Store(endpoint, bucket, { checksums: "required" });
    await useAll(store);
  });

  test("that a server refuses keep the store from being used", async () => {
    const { endpoint } = await other({ refusesChecksums: true });
    await using store = s3Store(endpoint, bucket);
    const error = await refusal(store.check(never));
    expect(error.message).toContain("the artifact store failed with status 501");
  });
});
