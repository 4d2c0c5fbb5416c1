/**
 * The S3 store where something goes wrong on its way to the server, and what it writes there.
 */
import { randomUUID } from "node:crypto";
import { Readable, Writable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { pipeline } from "node:stream/promises";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { startFakeS3 } from "../../../harness/fakes/s3/server.ts";
import type { FaultKind } from "../../../harness/fakes/faults.ts";
import type { S3Operation } from "../../../harness/fakes/s3/request.ts";
import type { ArtifactSource, ArtifactStore } from "../../../worker/artifacts/store.ts";
import { s3Store, useCredentials, useFakeS3 } from "../../support/s3.ts";

const bucketName = "artifacts";
const server = useFakeS3({ buckets: [bucketName] });
const never = new AbortController().signal;
const text = { mimeType: "text/plain" };
const MiB = 1024 * 1024;

function newScope() {
  return { root: `scope-${randomUUID()}`, userId: "user-42", sessionId: "web-1" };
}

function sourceOf(content: string | Buffer): ArtifactSource {
  const bytes = Buffer.from(content);
  return {
    sizeBytes: bytes.byteLength,
    open: () => Readable.from([bytes], { objectMode: false }),
  };
}

/** Content in which no byte is where another one should be. */
function largeContent(sizeBytes: number): Buffer {
  const content = Buffer.alloc(sizeBytes);
  for (let at = 0; at < sizeBytes; at += 4) content.writeUInt32LE(at, at);
  return content;
}

function openStore(...args: Parameters<typeof s3Store> | []): ArtifactStore {
  const store = args.length === 0 ? s3Store(server().endpoint, bucketName) : s3Store(...args);
  onTestFinished(() => store[Symbol.asyncDispose]());
  return store;
}

/** Requests of an operation go wrong until the test is over. */
function fault(operation: S3Operation, kind: FaultKind, times = 1): void {
  const rule = server().fault({ operation, fault: kind, times });
  onTestFinished(() => rule[Symbol.dispose]());
}

async function read(store: ArtifactStore, scope: ReturnType<typeof newScope>, filename: string) {
  const { body } = await store.open(scope, { filename, version: undefined }, never);
  return buffer(body);
}

/** The keys of a scope, with what is known of each object. */
function objectsOf(root: string) {
  return [...server().bucket(bucketName).objects].filter(([key]) => key.startsWith(`${root}/`));
}

describe("an object", () => {
  test("is encrypted and stored as the operator says", async () => {
    const scope = newScope();
    const how = { encryption: "aws:kms", kmsKeyId: "key-1", storageClass: "STANDARD_IA" } as const;
    const store = openStore(server().endpoint, bucketName, how);
    const content = largeContent(6 * MiB);
    await store.save(scope, "small", sourceOf("a"), text, never);
    await store.save(scope, "large", sourceOf(content), text, never);
    for (const [, { headers }] of objectsOf(scope.root)) {
      expect(headers).toMatchObject({
        "x-amz-server-side-encryption": "aws:kms",
        "x-amz-server-side-encryption-aws-kms-key-id": "key-1",
        "x-amz-storage-class": "STANDARD_IA",
      });
    }
  });

  test("of several parts comes back byte by byte", async () => {
    const [store, scope, content] = [openStore(), newScope(), largeContent(12 * MiB + 4)];
    await store.save(scope, "large.bin", sourceOf(content), text, never);
    expect((await read(store, scope, "large.bin")).equals(content)).toBe(true);
  });
});

test("32 savers of one name get 32 versions", async () => {
  const [store, scope] = [openStore(), newScope()];
  const saved = await Promise.all(
    Array.from({ length: 32 }, (_, i) => store.save(scope, "a", sourceOf(`${i}`), text, never)),
  );
  const versions = saved.map(({ version }) => version).sort((a, b) => a - b);
  expect(versions).toEqual([...Array(32).keys()]);
});

test("2,500 versions are listed, and the latest is found", async () => {
  const { root, userId, sessionId } = newScope();
  for (let version = 0; version < 2_500; version++) {
    const key = `${root}/${userId}/${sessionId}/a/${version}`;
    const conditions = { ifNoneMatch: undefined, ifMatch: undefined };
    server()
      .bucket(bucketName)
      .put(key, Buffer.from(`${version}`), {}, conditions);
  }
  const [store, scope] = [openStore(), { root, userId, sessionId }];
  expect(await store.versions(scope, "a", never)).toEqual([...Array(2_500).keys()]);
  expect((await read(store, scope, "a")).toString()).toBe("2499");
});

test("2,500 names are listed", async () => {
  const { root, userId, sessionId } = newScope();
  const names = Array.from({ length: 2_500 }, (_, index) => `report ${10_000 + index}.csv`);
  const anyway = { ifNoneMatch: undefined, ifMatch: undefined };
  for (const name of names) {
    const key = `${root}/${userId}/${sessionId}/${name}/0`;
    server().bucket(bucketName).put(key, Buffer.from(name), {}, anyway);
  }
  expect(await openStore().names({ root, userId, sessionId }, never)).toEqual(names);
});

describe("a save", () => {
  test.each([
    ["of a small file", "PutObject", 10],
    ["of a large file", "CompleteMultipartUpload", 6 * MiB],
  ] as const)("%s whose answer is lost makes one version", async (_what, operation, sizeBytes) => {
    const [store, scope] = [openStore(), newScope()];
    fault(operation, { kind: "lose answer" });
    const content = Buffer.alloc(sizeBytes, "x");
    const saved = await store.save(scope, "a", sourceOf(content), text, never);
    expect(saved.version).toBe(0);
    expect(objectsOf(scope.root).map(([key]) => key.split("/").at(-1))).toEqual(["0"]);
  });

  test.each(["cut request", "lose answer"] as const)(
    "goes on when a part meets: %s",
    async (kind) => {
      const [store, scope, content] = [openStore(), newScope(), largeContent(11 * MiB)];
      fault("UploadPart", { kind });
      await store.save(scope, "a", sourceOf(content), text, never);
      expect((await read(store, scope, "a")).equals(content)).toBe(true);
    },
  );

  test("that fails leaves no version, and no parts", async () => {
    const [store, scope] = [openStore(), newScope()];
    fault("CompleteMultipartUpload", { kind: "error", status: 403, code: "AccessDenied" });
    const save = store.save(scope, "a", sourceOf(largeContent(11 * MiB)), text, never);
    await expect(save).rejects.toMatchObject({ name: "StoreError", reason: "unavailable" });
    expect(objectsOf(scope.root)).toEqual([]);
    const uploads = [...server().bucket(bucketName).uploads.values()];
    expect(uploads.filter(({ key }) => key.startsWith(scope.root))).toEqual([]);
  });

  test("that is aborted ends at once, and leaves no parts", async () => {
    const [store, scope, abort] = [openStore(), newScope(), new AbortController()];
    fault("UploadPart", { kind: "stall" });
    const save = store.save(scope, "a", sourceOf(largeContent(11 * MiB)), text, abort.signal);
    const uploads = () =>
      [...server().bucket(bucketName).uploads.values()].filter(({ key }) =>
        key.startsWith(scope.root),
      );
    // One part stalls, and others are there.
    await vi.waitFor(() => expect(uploads()[0]?.parts.size).toBeGreaterThan(0));
    const reason = new Error("the call is over");
    abort.abort(reason);
    await expect(save).rejects.toBe(reason);
    expect(uploads()).toEqual([]);
  });
});

describe("reading", () => {
  test("goes on where the connection was cut", async () => {
    const [store, scope, content] = [openStore(), newScope(), largeContent(3 * MiB)];
    await store.save(scope, "a", sourceOf(content), text, never);
    fault("GetObject", { kind: "cut answer", afterBytes: 700_000 }, 3);
    expect((await read(store, scope, "a")).equals(content)).toBe(true);
  });

  test("fails when the connection is cut again and again", async () => {
    const [store, scope] = [openStore(), newScope()];
    await store.save(scope, "a", sourceOf(largeContent(MiB)), text, never);
    fault("GetObject", { kind: "cut answer", afterBytes: 0 }, 100);
    await expect(read(store, scope, "a")).rejects.toMatchObject({
      name: "StoreError",
      message: expect.stringContaining("again and again"),
    });
  });

  test("repeats what was damaged once, and fails when it always is", async () => {
    const [store, scope] = [openStore(), newScope()];
    await store.save(scope, "a", sourceOf("content"), text, never);
    fault("GetObject", { kind: "damage answer" });
    expect((await read(store, scope, "a")).toString()).toBe("content");
    fault("GetObject", { kind: "damage answer" }, 100);
    await expect(read(store, scope, "a")).rejects.toMatchObject({
      name: "StoreError",
      message: expect.stringContaining("damaged"),
    });
  });

  test("ends where its owner destroys it while it waits for the rest", async () => {
    const [store, scope] = [openStore(), newScope()];
    await store.save(scope, "a", sourceOf(largeContent(MiB)), text, never);
    fault("GetObject", { kind: "cut answer", afterBytes: 1_000 });
    fault("GetObject", { kind: "stall" }, 100);
    const { body } = await store.open(scope, { filename: "a", version: 0 }, never);
    const abort = new AbortController();
    const reading = pipeline(body, new Writable({ write: (_chunk, _encoding, done) => done() }), {
      signal: abort.signal,
    });
    await vi.waitFor(() => expect(body.readableDidRead).toBe(true));
    abort.abort();
    await expect(reading).rejects.toThrow("aborted");
    expect(body.destroyed).toBe(true);
  });

  test("fails when the rest is of another object", async () => {
    const [store, scope] = [openStore(), newScope()];
    const saved = await store.save(scope, "a", sourceOf(largeContent(MiB)), text, never);
    fault("GetObject", { kind: "cut answer", afterBytes: 1_000 });
    const { body } = await store.open(scope, { filename: "a", version: 0 }, never);
    await store.deleteVersion(scope, "a", saved, never);
    await store.save(scope, "a", sourceOf(Buffer.alloc(MiB, "other")), text, never);
    await expect(buffer(body)).rejects.toMatchObject({ name: "StoreError" });
  });
});

describe("an error names the artifact, and nothing of the store:", () => {
  const hidden = /artifacts\b|127\.0\.0\.1|fake-|us-east|scope-/;

  test.each([
    [403, "AccessDenied", "denies access"],
    [503, "SlowDown", "is busy"],
    [429, "TooManyRequests", "is busy"],
    [500, "InternalError", "failed with status 500"],
  ])("%i %s", async (status, code, reason) => {
    const [store, scope] = [openStore(), newScope()];
    fault("PutObject", { kind: "error", status, code }, 10);
    const error: unknown = await store
      .save(scope, "a.txt", sourceOf("a"), text, never)
      .catch((failure: unknown) => failure);
    expect(error).toMatchObject({ name: "StoreError", reason: "unavailable" });
    const { message } = error as Error;
    expect(message).toContain('"a.txt"');
    expect(message).toContain(reason);
    expect(message.replace("artifact store", "")).not.toMatch(hidden);
  });

  test("a bucket that does not exist", async () => {
    const store = openStore(server().endpoint, "missing");
    await expect(store.check(never)).rejects.toThrow("its bucket does not exist");
  });

  test("a server that is not there", async () => {
    const gone = await startFakeS3({ buckets: [bucketName] });
    const { endpoint } = gone;
    await gone[Symbol.asyncDispose]();
    await expect(openStore(endpoint, bucketName).check(never)).rejects.toThrow("cannot be reached");
  });

  test("a clock that differs", async () => {
    await using skewed = await startFakeS3({ buckets: [bucketName], clockOffsetMs: 3_600_000 });
    // The SDK corrects its clock by the first answer.
    await expect(openStore(skewed.endpoint, bucketName).check(never)).resolves.toEqual([]);
  });

  test("a wrong secret", async () => {
    const { accessKeyId, secretAccessKey } = server();
    useCredentials(accessKeyId, "wrong");
    onTestFinished(() => useCredentials(accessKeyId, secretAccessKey));
    await expect(openStore().check(never)).rejects.toThrow("denies access");
  });
});

test("a moment's throttling is waited for", async () => {
  const [store, scope] = [openStore(), newScope()];
  fault("PutObject", { kind: "error", status: 503, code: "SlowDown" }, 2);
  expect(await store.save(scope, "a", sourceOf("a"), text, never)).toMatchObject({ version: 0 });
});
