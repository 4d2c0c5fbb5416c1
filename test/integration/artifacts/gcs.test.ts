/**
 * The store of Google Cloud Storage where something goes wrong on its way to the server, and what
 * it writes there.
 */
import { randomUUID } from "node:crypto";
import { Readable, Writable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { pipeline } from "node:stream/promises";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import type { GcsOperation } from "../../../harness/fakes/gcs/request.ts";
import { type GcsFaultKind, startFakeGcs } from "../../../harness/fakes/gcs/server.ts";
import type { ArtifactSource, ArtifactStore } from "../../../worker/artifacts/store.ts";
import { gcsStore, useFakeGcs, useGcsCredentials } from "../../support/gcs.ts";

const bucketName = "artifacts";
const server = useFakeGcs({ buckets: [bucketName] });
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

function openStore(...args: Parameters<typeof gcsStore> | []): ArtifactStore {
  const store = args.length === 0 ? gcsStore(server().endpoint, bucketName) : gcsStore(...args);
  onTestFinished(() => store[Symbol.asyncDispose]());
  return store;
}

/** Requests of an operation go wrong until the test is over. */
function fault(operation: GcsOperation, kind: GcsFaultKind, times = 1): void {
  const rule = server().fault({ operation, fault: kind, times });
  onTestFinished(() => rule[Symbol.dispose]());
}

async function read(store: ArtifactStore, scope: ReturnType<typeof newScope>, filename: string) {
  const { body } = await store.open(scope, { filename, version: undefined }, never);
  return buffer(body);
}

/** The names of a scope, with what is known of each object. */
function objectsOf(root: string) {
  return [...server().bucket(bucketName).objects].filter(([name]) => name.startsWith(`${root}/`));
}

function uploadsOf(root: string) {
  const uploads = [...server().bucket(bucketName).uploads.values()];
  return uploads.filter(({ facts }) => facts.name.startsWith(`${root}/`));
}

describe("an object", () => {
  test("is encrypted and stored as the operator says", async () => {
    const scope = newScope();
    const kmsKey = "projects/p/locations/l/keyRings/r/cryptoKeys/k";
    const store = openStore(server().endpoint, bucketName, { kmsKey, storageClass: "NEARLINE" });
    await store.save(scope, "small", sourceOf("a"), text, never);
    await store.save(scope, "large", sourceOf(largeContent(9 * MiB)), text, never);
    expect(objectsOf(scope.root)).toHaveLength(2);
    for (const [, { facts }] of objectsOf(scope.root))
      expect(facts).toMatchObject({ kmsKeyName: kmsKey, storageClass: "NEARLINE" });
  });

  test.each([8 * MiB, 16 * MiB, 17 * MiB + 4])(
    "of %i bytes comes back byte by byte",
    async (sizeBytes) => {
      const [store, scope, content] = [openStore(), newScope(), largeContent(sizeBytes)];
      await store.save(scope, "large.bin", sourceOf(content), text, never);
      expect((await read(store, scope, "large.bin")).equals(content)).toBe(true);
    },
  );

  test("that was stored compressed comes as it is stored", async () => {
    const [store, scope] = [openStore(), newScope()];
    const name = `${scope.root}/user-42/web-1/a/0`;
    const facts = { name, contentType: "text/plain", contentEncoding: "gzip" };
    server().bucket(bucketName).put(facts, Buffer.from("compressed"));
    expect((await read(store, scope, "a")).toString()).toBe("compressed");
  });

  test("that has only an address of its content is refused", async () => {
    const [store, scope] = [openStore(), newScope()];
    const name = `${scope.root}/user-42/web-1/a/0`;
    const metadata = { adkFileUri: "https://example.com/a" };
    server().bucket(bucketName).put({ name, metadata }, Buffer.alloc(0));
    await expect(read(store, scope, "a")).rejects.toThrow("an agent saved an address there");
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
  const scope = newScope();
  for (let version = 0; version < 2_500; version++) {
    const name = `${scope.root}/user-42/web-1/a/${version}`;
    server()
      .bucket(bucketName)
      .put({ name }, Buffer.from(`${version}`));
  }
  const store = openStore();
  expect(await store.versions(scope, "a", never)).toEqual([...Array(2_500).keys()]);
  expect((await read(store, scope, "a")).toString()).toBe("2499");
});

test("2,500 names are listed", async () => {
  const scope = newScope();
  const names = Array.from({ length: 2_500 }, (_, index) => `report ${10_000 + index}.csv`);
  for (const filename of names) {
    const name = `${scope.root}/user-42/web-1/${filename}/0`;
    server().bucket(bucketName).put({ name }, Buffer.from(filename));
  }
  expect(await openStore().names(scope, never)).toEqual(names);
});

describe("a save", () => {
  test.each([
    ["of a small file", "objects.insert", 12],
    ["of a large file", "uploads.put", 9 * MiB],
  ] as const)("%s whose answer is lost makes one version", async (_what, operation, sizeBytes) => {
    const [store, scope, content] = [openStore(), newScope(), largeContent(sizeBytes)];
    fault(operation, { kind: "lose answer" }, 2);
    const saved = await store.save(scope, "a", sourceOf(content), text, never);
    expect(objectsOf(scope.root).map(([name]) => name.split("/").at(-1))).toEqual(["0"]);
    expect((await read(store, scope, "a")).equals(content)).toBe(true);
    expect(await store.deleteVersion(scope, "a", saved, never)).toBe(true);
  });

  test.each([
    { kind: "cut request" },
    { kind: "lose answer" },
    { kind: "keep part", bytes: 3 * MiB },
    { kind: "error", status: 503, code: "backendError" },
  ] as const)("goes on when a part meets: $kind", async (kind) => {
    const [store, scope, content] = [openStore(), newScope(), largeContent(18 * MiB)];
    fault("uploads.put", kind);
    await store.save(scope, "a", sourceOf(content), text, never);
    expect((await read(store, scope, "a")).equals(content)).toBe(true);
  });

  test("begins again when the server has lost its upload", async () => {
    const [store, scope, content] = [openStore(), newScope(), largeContent(9 * MiB)];
    fault("uploads.put", { kind: "error", status: 410, code: "gone" });
    await store.save(scope, "a", sourceOf(content), text, never);
    expect((await read(store, scope, "a")).equals(content)).toBe(true);
  });

  test("that fails leaves no version, and no upload", async () => {
    const [store, scope] = [openStore(), newScope()];
    fault("uploads.put", { kind: "error", status: 403, code: "forbidden" });
    const save = store.save(scope, "a", sourceOf(largeContent(17 * MiB)), text, never);
    await expect(save).rejects.toMatchObject({ name: "StoreError", reason: "unavailable" });
    expect(objectsOf(scope.root)).toEqual([]);
    expect(uploadsOf(scope.root)).toEqual([]);
  });

  test("of more bytes than announced leaves no version, however large it is", async () => {
    const [store, scope, content] = [openStore(), newScope(), largeContent(16 * MiB)];
    const halves = [content, Buffer.from("more")];
    const open = () => Readable.from(halves, { objectMode: false });
    const save = store.save(scope, "a", { sizeBytes: 16 * MiB, open }, text, never);
    await expect(save).rejects.toThrow("more than the announced");
    expect(objectsOf(scope.root)).toEqual([]);
    expect(uploadsOf(scope.root)).toEqual([]);
  });

  test("that is aborted ends at once, and leaves no upload and no connection", async () => {
    await using own = await startFakeGcs({ buckets: [bucketName], isOpen: true });
    const store = openStore(own.endpoint, bucketName, { isAnonymous: true });
    const [scope, abort] = [newScope(), new AbortController()];
    own.fault({ operation: "uploads.put", fault: { kind: "stall" } });
    const source = sourceOf(largeContent(17 * MiB));
    const save = store.save(scope, "a", source, text, abort.signal);
    const { uploads } = own.bucket(bucketName);
    await vi.waitFor(() => expect(uploads.size).toBe(1));
    const reason = new Error("the call is over");
    abort.abort(reason);
    await expect(save).rejects.toBe(reason);
    expect(uploads.size).toBe(0);
    await store[Symbol.asyncDispose]();
    await vi.waitFor(async () => expect(await own.connections()).toBe(0));
  });
});

describe("reading", () => {
  test("goes on where the connection was cut", async () => {
    const [store, scope, content] = [openStore(), newScope(), largeContent(3 * MiB)];
    await store.save(scope, "a", sourceOf(content), text, never);
    fault("objects.download", { kind: "cut answer", afterBytes: 700_000 }, 3);
    expect((await read(store, scope, "a")).equals(content)).toBe(true);
  });

  test("fails when the connection is cut again and again", async () => {
    const [store, scope] = [openStore(), newScope()];
    await store.save(scope, "a", sourceOf(largeContent(MiB)), text, never);
    fault("objects.download", { kind: "cut answer", afterBytes: 0 }, 100);
    await expect(read(store, scope, "a")).rejects.toMatchObject({
      name: "StoreError",
      message: expect.stringContaining("again and again"),
    });
  });

  test("fails when the content was damaged", async () => {
    const [store, scope] = [openStore(), newScope()];
    await store.save(scope, "a", sourceOf("content"), text, never);
    fault("objects.download", { kind: "damage answer" });
    await expect(read(store, scope, "a")).rejects.toMatchObject({
      name: "StoreError",
      message: expect.stringContaining("damaged"),
    });
  });

  test("ends, and its connection with it, where its owner destroys it", async () => {
    await using own = await startFakeGcs({ buckets: [bucketName], isOpen: true });
    const store = openStore(own.endpoint, bucketName, { isAnonymous: true });
    const scope = newScope();
    await store.save(scope, "a", sourceOf(largeContent(MiB)), text, never);
    own.fault({ operation: "objects.download", fault: { kind: "cut answer", afterBytes: 1_000 } });
    own.fault({ operation: "objects.download", fault: { kind: "stall" }, times: 100 });
    const { body } = await store.open(scope, { filename: "a", version: 0 }, never);
    const idle = await own.connections();
    const abort = new AbortController();
    const reading = pipeline(body, new Writable({ write: (_chunk, _encoding, done) => done() }), {
      signal: abort.signal,
    });
    await vi.waitFor(() => expect(body.readableDidRead).toBe(true));
    abort.abort();
    await expect(reading).rejects.toThrow("aborted");
    expect(body.destroyed).toBe(true);
    await vi.waitFor(async () => expect(await own.connections()).toBeLessThanOrEqual(idle - 1));
  });

  test("fails when the rest is of another object", async () => {
    const [store, scope] = [openStore(), newScope()];
    const saved = await store.save(scope, "a", sourceOf(largeContent(MiB)), text, never);
    const { body } = await store.open(scope, { filename: "a", version: 0 }, never);
    await store.deleteVersion(scope, "a", saved, never);
    await store.save(scope, "a", sourceOf(Buffer.alloc(MiB, "other")), text, never);
    await expect(buffer(body)).rejects.toMatchObject({ name: "StoreError" });
  });
});

describe("an error names the artifact, and nothing of the store:", () => {
  const hidden = /artifacts\b|127\.0\.0\.1|fake-|scope-/;

  test.each([
    [403, "forbidden", "denies access"],
    [503, "backendError", "is busy"],
    [429, "rateLimitExceeded", "is busy"],
    [500, "backendError", "failed with status 500"],
  ])("%i %s", async (status, code, reason) => {
    const [store, scope] = [openStore(), newScope()];
    fault("objects.insert", { kind: "error", status, code }, 10);
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
    const scope = newScope();
    const save = store.save(scope, "a", sourceOf("a"), text, never);
    await expect(save).rejects.toThrow("its bucket does not exist");
    const open = store.open(scope, { filename: "a", version: 0 }, never);
    await expect(open).rejects.toThrow("its bucket does not exist");
  });

  test("a server that is not there", async () => {
    const gone = await startFakeGcs({ buckets: [bucketName] });
    const { endpoint } = gone;
    await gone[Symbol.asyncDispose]();
    const store = openStore(endpoint, bucketName, { isAnonymous: true });
    await expect(store.check(never)).rejects.toThrow("cannot be reached");
  });

  test("a server that ignores conditions", async () => {
    const ignoring = { buckets: [bucketName], isOpen: true, ignoresConditions: true };
    await using own = await startFakeGcs(ignoring);
    const store = openStore(own.endpoint, bucketName, { isAnonymous: true });
    await expect(store.check(never)).rejects.toThrow("ignores ifGenerationMatch");
    expect(own.bucket(bucketName).objects.size).toBe(0);
  });
});

describe("credentials", () => {
  /** In the environment until the test is over. */
  function use(file: string): ArtifactStore {
    useGcsCredentials(file);
    onTestFinished(() => useGcsCredentials(server().credentialsFile));
    return openStore();
  }

  test("of a service account sign the requests", async () => {
    await expect(use(server().serviceAccountFile).check(never)).resolves.toEqual([]);
  });

  test("of another service account are refused", async () => {
    await using other = await startFakeGcs({ buckets: [bucketName] });
    await expect(use(other.serviceAccountFile).check(never)).rejects.toThrow("denies access");
  });

  test("of an identity that the exchange refuses are refused", async () => {
    fault("token", { kind: "error", status: 400, code: "The subject token is unknown." });
    await expect(use(server().credentialsFile).check(never)).rejects.toThrow("denies access");
  });

  test("that a differing clock makes unusable are told apart", async () => {
    fault("token", { kind: "error", status: 400, code: "Check your iat and exp values." });
    await expect(use(server().credentialsFile).check(never)).rejects.toThrow("clock");
  });

  test("that are nowhere are told apart", async () => {
    await expect(use("/nowhere/credentials.json").check(never)).rejects.toThrow(
      "the worker has no credentials",
    );
  });

  test("are none without any, which only an open server takes", async () => {
    const store = openStore(server().endpoint, bucketName, { isAnonymous: true });
    await expect(store.check(never)).rejects.toThrow("denies access");
  });
});

test("the variable of emulators changes nothing", async () => {
  vi.stubEnv("STORAGE_EMULATOR_HOST", "http://127.0.0.1:1");
  onTestFinished(() => void vi.stubEnv("STORAGE_EMULATOR_HOST", undefined));
  await expect(openStore().check(never)).resolves.toEqual([]);
});

test("a moment's throttling is waited for", async () => {
  const [store, scope] = [openStore(), newScope()];
  fault("objects.insert", { kind: "error", status: 503, code: "backendError" }, 2);
  expect(await store.save(scope, "a", sourceOf("a"), text, never)).toMatchObject({ version: 0 });
});

test(
  "a server that is silent for 20 s is asked again, also on a connection that it keeps for 5 s",
  { tags: "full", timeout: 60_000 },
  async () => {
    const store = openStore();
    await store.check(never);
    fault("objects.list", { kind: "stall" });
    const startedMs = performance.now();
    await expect(store.check(never)).resolves.toEqual([]);
    expect(performance.now() - startedMs).toBeGreaterThan(19_000);
  },
);
