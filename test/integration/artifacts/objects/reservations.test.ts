/**
 * Versions of large files on servers with conditions: who saves one reserves it first.
 */
import { createHash } from "node:crypto";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import type { ArtifactScope, ArtifactStore } from "../../../../worker/artifacts/store.ts";
import { keyOf } from "../../../conformance/artifacts/object-store/seeded.ts";
import { contentOf } from "../../../conformance/artifacts/object-store/saving.ts";
import {
  expectRefusal,
  never,
  newScope,
  saveText,
  sourceOf,
  text,
} from "../../../conformance/artifacts/under-test.ts";
import { gcsStore, useFakeGcs } from "../../../support/gcs.ts";
import { s3Store, useFakeS3 } from "../../../support/s3.ts";

const s3 = useFakeS3({ buckets: ["artifacts"] });
const gcs = useFakeGcs({ buckets: ["artifacts"] });

const MiB = 1024 * 1024;

const unconditional = { ifNoneMatch: undefined, ifMatch: undefined };

interface Kind {
  readonly name: string;
  /** Of two parts. */
  readonly sizeBytes: number;
  readonly open: () => ArtifactStore;
  /** Writes an object behind the store's back. */
  readonly put: (key: string, content: string) => void;
  readonly keys: () => readonly string[];
  /** Requests with a part so far, where the server counts them. */
  readonly parts?: () => number;
  /** Denies parts until the test is over. */
  readonly denyParts: () => Disposable;
}

const denied = { kind: "error", status: 403, code: "AccessDenied" } as const;

const kinds: readonly Kind[] = [
  {
    name: "S3",
    sizeBytes: 5 * MiB + 4,
    open: () => s3Store(s3().endpoint, "artifacts"),
    put: (key, body) =>
      void s3().bucket("artifacts").put(key, Buffer.from(body), {}, unconditional),
    keys: () => [...s3().bucket("artifacts").objects.keys()],
    parts: () => s3().count("UploadPart"),
    denyParts: () => s3().fault({ operation: "UploadPart", fault: denied, times: 100 }),
  },
  {
    name: "Cloud Storage",
    sizeBytes: 8 * MiB + 4,
    open: () => gcsStore(gcs().endpoint, "artifacts"),
    put: (name, body) => void gcs().bucket("artifacts").put({ name }, Buffer.from(body)),
    keys: () => [...gcs().bucket("artifacts").objects.keys()],
    denyParts: () => gcs().fault({ operation: "uploads.put", fault: denied, times: 100 }),
  },
];

const filename = "a.bin";

describe.for(kinds)("in $name", (kind) => {
  const { sizeBytes, open, put, keys, parts = () => 0, denyParts } = kind;
  const content = contentOf(sizeBytes);

  function openWorker(): ArtifactStore {
    const store = open();
    onTestFinished(() => store[Symbol.asyncDispose]());
    return store;
  }

  /** A save of a large file, and how often its content is sent. */
  async function saveLarge(store: ArtifactStore, scope: ArtifactScope, onSend = () => {}) {
    let sent = 0;
    const source = {
      sizeBytes,
      open: () => {
        if (++sent === 1) onSend();
        return sourceOf(content).open();
      },
    };
    const { version } = await store.save(scope, filename, source, text, never);
    return { version, sent };
  }

  function reservationOf(scope: ArtifactScope, version: number): string {
    const key = keyOf({ scope, filename, version });
    return `.str-claims/versions/${createHash("sha256").update(key).digest("hex")}`;
  }

  const reservations = () => keys().filter((key) => key.startsWith(".str-claims/versions/"));

  test("four workers that save one name send each file once", { tags: "full" }, async () => {
    const scope = newScope();
    const before = parts();
    const saved = await Promise.all(
      Array.from({ length: 4 }, () => saveLarge(openWorker(), scope)),
    );
    expect(new Set(saved.map(({ version }) => version)).size).toBe(4);
    expect(saved.map(({ sent }) => sent)).toEqual(Array(4).fill(1));
    expect(parts() - before).toBeLessThanOrEqual(4 * 2);
    expect(reservations()).toEqual([]);
  });

  test("a version that another worker is writing is left to it", async () => {
    const [store, scope] = [openWorker(), newScope()];
    const reservation = reservationOf(scope, 0);
    put(reservation, "of another worker");
    expect(await saveLarge(store, scope)).toEqual({ version: 1, sent: 1 });
    expect(reservations()).toEqual([reservation]);
  });

  test("a reservation keeps small files from nothing", async () => {
    const [store, scope] = [openWorker(), newScope()];
    put(reservationOf(scope, 0), "of another worker");
    expect(await saveText(store, scope, filename, "small")).toMatchObject({ version: 0 });
  });

  test("a reservation that a killed worker left is taken over", async () => {
    const [store, scope] = [openWorker(), newScope()];
    const startMs = Date.now();
    const clock = vi.spyOn(Date, "now").mockReturnValue(startMs - 16 * 60_000);
    put(reservationOf(scope, 0), "of a killed worker");
    clock.mockRestore();
    expect(await saveLarge(store, scope)).toEqual({ version: 0, sent: 1 });
    expect(keys()).not.toContain(reservationOf(scope, 0));
  });

  test("a version that an agent takes meanwhile is followed by the next free one", async () => {
    const [store, scope] = [openWorker(), newScope()];
    const saved = await saveLarge(store, scope, () => {
      for (let version = 0; version < 5; version++) put(keyOf({ scope, filename, version }), "new");
    });
    expect(saved).toEqual({ version: 5, sent: 2 });
  });

  test("a save that fails gives its reservation back", async () => {
    const [store, scope] = [openWorker(), newScope()];
    using _denied = denyParts();
    await expectRefusal(saveLarge(store, scope), "unavailable", "denies access");
    expect(keys()).not.toContain(reservationOf(scope, 0));
  });
});
