/**
 * What only the store of Google Cloud Storage does: how it writes objects, goes on with uploads,
 * ends connections and finds credentials.
 */
import { defaultMaxListeners } from "node:events";
import { Readable, Writable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { pipeline } from "node:stream/promises";
import { setImmediate as nextTurn } from "node:timers/promises";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import type { GcsOperation } from "../../../harness/fakes/gcs/request.ts";
import { type GcsFaultKind, startFakeGcs } from "../../../harness/fakes/gcs/server.ts";
import {
  type ArtifactScope,
  type ArtifactStore,
  NotDeletedError,
} from "../../../worker/artifacts/store.ts";
import { contentOf } from "../../conformance/artifacts/object-store/saving.ts";
import { keyOf } from "../../conformance/artifacts/object-store/seeded.ts";
import {
  newScope,
  never,
  readText,
  sourceOf,
  streamOf,
  text,
} from "../../conformance/artifacts/under-test.ts";
import { gcsStore, useFakeGcs, useGcsCredentials } from "../../support/gcs.ts";
import { patience } from "../../support/patience.ts";

const bucketName = "artifacts";
const server = useFakeGcs({ buckets: [bucketName] });
const MiB = 1024 * 1024;

/** More than any store repeats a request. */
const always = 100;

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

async function read(store: ArtifactStore, scope: ArtifactScope, filename: string) {
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
    await store.save(scope, "large", sourceOf(contentOf(9 * MiB)), text, never);
    expect(objectsOf(scope.root)).toHaveLength(2);
    for (const [, { facts }] of objectsOf(scope.root))
      expect(facts).toMatchObject({ kmsKeyName: kmsKey, storageClass: "NEARLINE" });
  });

  test("of whole parts comes back byte by byte", { tags: "full" }, async () => {
    const [store, scope, content] = [openStore(), newScope(), contentOf(16 * MiB)];
    await store.save(scope, "large.bin", sourceOf(content), text, never);
    expect((await read(store, scope, "large.bin")).equals(content)).toBe(true);
  });

  test("that was stored compressed comes as it is stored", async () => {
    const [store, scope] = [openStore(), newScope()];
    const name = keyOf({ scope, filename: "a", version: 0 });
    const facts = { name, contentType: "text/plain", contentEncoding: "gzip" };
    server().bucket(bucketName).put(facts, Buffer.from("compressed"));
    expect(await readText(store, scope, "a")).toBe("compressed");
  });

  test("that has only an address of its content is refused", async () => {
    const [store, scope] = [openStore(), newScope()];
    const name = keyOf({ scope, filename: "a", version: 0 });
    const metadata = { adkFileUri: "https://example.com/a" };
    server().bucket(bucketName).put({ name, metadata }, Buffer.alloc(0));
    await expect(readText(store, scope, "a")).rejects.toThrow("an agent saved an address there");
  });
});

describe("a save", () => {
  async function goesOn(kind: GcsFaultKind): Promise<void> {
    const [store, scope, content] = [openStore(), newScope(), contentOf(9 * MiB)];
    fault("uploads.put", kind);
    await store.save(scope, "a", sourceOf(content), text, never);
    expect((await read(store, scope, "a")).equals(content)).toBe(true);
  }
  test("goes on when a part is kept to its half", { tags: "full" }, () =>
    goesOn({ kind: "keep part", bytes: 3 * MiB }),
  );
  test("goes on when a part fails once", { tags: "full" }, () =>
    goesOn({ kind: "error", status: 503, code: "backendError" }),
  );

  test("begins again when the server has lost its upload", async () => {
    const [store, scope, content] = [openStore(), newScope(), contentOf(9 * MiB)];
    fault("uploads.put", { kind: "error", status: 410, code: "gone" });
    await store.save(scope, "a", sourceOf(content), text, never);
    expect((await read(store, scope, "a")).equals(content)).toBe(true);
  });

  test("fails when the server loses its uploads again and again", { tags: "full" }, async () => {
    const [store, scope, content] = [openStore(), newScope(), contentOf(9 * MiB)];
    fault("uploads.put", { kind: "error", status: 404, code: "notFound" }, always);
    const open = vi.fn(() => streamOf([content]));
    const saving = store.save(scope, "a", { sizeBytes: 9 * MiB, open }, text, never);
    await expect(saving).rejects.toThrow("failed with status 410");
    expect(open).toHaveBeenCalledTimes(4);
    expect(objectsOf(scope.root)).toEqual([]);
  });

  describe.each([10, 9 * MiB])("of %d bytes that the server damages", (sizeBytes) => {
    function saveDamaged(store: ArtifactStore, scope: ArtifactScope) {
      const stored = server().bucket(bucketName);
      const put = stored.put.bind(stored);
      const damage = vi.spyOn(stored, "put");
      onTestFinished(() => damage.mockRestore());
      damage.mockImplementation((facts, content, conditions) => {
        if (!facts.name.startsWith(scope.root)) return put(facts, content, conditions);
        const { crc32c: _crc32c, ...rest } = facts;
        return put(rest, Buffer.from("damaged"), conditions);
      });
      return store.save(scope, "a", sourceOf(contentOf(sizeBytes)), text, never);
    }

    test("fails, and leaves no version", async () => {
      const [store, scope] = [openStore(), newScope()];
      await expect(saveDamaged(store, scope)).rejects.toThrow(/"a" .* was damaged on its way\.$/);
      expect(objectsOf(scope.root)).toEqual([]);
    });

    test("fails with the version that cannot be deleted", async () => {
      const [store, scope] = [openStore(), newScope()];
      fault("objects.delete", { kind: "error", status: 403, code: "forbidden" }, always);
      const error: unknown = await saveDamaged(store, scope).catch((reason: unknown) => reason);
      expect(error).toBeInstanceOf(NotDeletedError);
      const { saved, cause } = error as NotDeletedError;
      expect(saved.version).toBe(0);
      expect(String(cause)).toContain("was damaged on its way");
    });
  });

  test("of more bytes than announced leaves no version, however large it is", async () => {
    const [store, scope, content] = [openStore(), newScope(), contentOf(9 * MiB)];
    const halves = [content, Buffer.from("more")];
    const open = () => Readable.from(halves, { objectMode: false });
    const save = store.save(scope, "a", { sizeBytes: 9 * MiB, open }, text, never);
    await expect(save).rejects.toThrow("more than the announced");
    expect(objectsOf(scope.root)).toEqual([]);
    expect(uploadsOf(scope.root)).toEqual([]);
  });
});

describe("no connection stays open", () => {
  test("after a save that is aborted", async () => {
    await using own = await startFakeGcs({ buckets: [bucketName], isOpen: true });
    const store = openStore(own.endpoint, bucketName, { isAnonymous: true });
    const abort = new AbortController();
    own.fault({ operation: "uploads.put", fault: { kind: "stall" } });
    const source = sourceOf(contentOf(9 * MiB));
    const save = store.save(newScope(), "a", source, text, abort.signal);
    const { uploads } = own.bucket(bucketName);
    await vi.waitFor(() => expect(uploads.size).toBe(1), patience);
    abort.abort();
    await expect(save).rejects.toBe(abort.signal.reason);
    await store[Symbol.asyncDispose]();
    await vi.waitFor(async () => expect(await own.connections()).toBe(0), patience);
  });

  test("after a body that its owner destroys", async () => {
    await using own = await startFakeGcs({ buckets: [bucketName], isOpen: true });
    const store = openStore(own.endpoint, bucketName, { isAnonymous: true });
    const scope = newScope();
    await store.save(scope, "a", sourceOf(contentOf(MiB)), text, never);
    own.fault({ operation: "objects.download", fault: { kind: "cut answer", afterBytes: 1_000 } });
    own.fault({ operation: "objects.download", fault: { kind: "stall" }, times: 100 });
    const { body } = await store.open(scope, { filename: "a", version: 0 }, never);
    const abort = new AbortController();
    const reading = pipeline(body, new Writable({ write: (_chunk, _encoding, done) => done() }), {
      signal: abort.signal,
    });
    reading.catch(() => undefined);
    await vi.waitFor(async () => {
      expect(body.readableDidRead).toBe(true);
      expect(await own.connections()).toBe(1);
    });
    abort.abort();
    await expect(reading).rejects.toThrow("aborted");
    await vi.waitFor(async () => expect(await own.connections()).toBe(0), patience);
  });
});

test("a server that ignores conditions is refused", async () => {
  const ignoring = { buckets: [bucketName], isOpen: true, ignoresConditions: true };
  await using own = await startFakeGcs(ignoring);
  const store = openStore(own.endpoint, bucketName, { isAnonymous: true });
  await expect(store.check(never)).rejects.toThrow("ignores ifGenerationMatch");
  expect(own.bucket(bucketName).objects.size).toBe(0);
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

  describe("of a clock that differs", () => {
    /** A store whose server's clock is ahead. */
    async function skewed(minutes: number, file: "credentialsFile" | "serviceAccountFile") {
      const options = { buckets: [bucketName], clockOffsetMs: minutes * 60_000 };
      const own = await startFakeGcs(options);
      onTestFinished(() => own[Symbol.asyncDispose]());
      useGcsCredentials(own[file]);
      onTestFinished(() => useGcsCredentials(server().credentialsFile));
      return openStore(own.endpoint, bucketName);
    }

    test.for([
      [-9, "credentialsFile"],
      [16, "credentialsFile"],
      [-9, "serviceAccountFile"],
      [9, "serviceAccountFile"],
    ] as const)("by %d minutes are those of a %s all the same", async ([minutes, file]) => {
      await expect((await skewed(minutes, file)).check(never)).resolves.toEqual([]);
    });

    test.for([
      [-11, "credentialsFile", "clock"],
      [-11, "serviceAccountFile", "denies access"],
      [11, "serviceAccountFile", "denies access"],
    ] as const)("by %d minutes are refused those of a %s: %s", async ([minutes, file, reason]) => {
      await expect((await skewed(minutes, file)).check(never)).rejects.toThrow(reason);
    });
  });

  test("of an identity that the exchange refuses are refused", async () => {
    fault("token", { kind: "error", status: 400, code: "The subject token is unknown." });
    await expect(use(server().credentialsFile).check(never)).rejects.toThrow("denies access");
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

test("requests on a kept connection leave no listener behind", async () => {
  const warnings: Error[] = [];
  const note = (warning: Error): void => void warnings.push(warning);
  process.on("warning", note);
  onTestFinished(() => void process.off("warning", note));
  const store = openStore();
  for (let request = 0; request < 2 * defaultMaxListeners; request++) await store.check(never);
  // Warnings come after the work that causes them.
  await nextTurn();
  expect(warnings).toEqual([]);
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
