/**
 * Stores of files, some of whose methods do otherwise.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import { onTestFinished } from "vitest";
import { createFilesystemStore } from "../../../../worker/artifacts/filesystem/store.ts";
import type { ArtifactStore } from "../../../../worker/artifacts/store.ts";
import { never, sourceOf, text } from "../../../conformance/artifacts/under-test.ts";

export const scope = { root: "cached", userId: "user-42", sessionId: "web-1" };

/** A store in a directory of its own, until the end of the test. */
export async function fileStore(): Promise<ArtifactStore> {
  const basePath = await mkdtemp(join(tmpdir(), "str-base-"));
  onTestFinished(() => rm(basePath, { recursive: true }));
  return createFilesystemStore({ basePath });
}

/** A store with other methods in place of its own. Disposing it disposes the store. */
export function altered(store: ArtifactStore, changes: Partial<ArtifactStore>): ArtifactStore {
  return new Proxy(store, {
    get(target, name) {
      const value: unknown = Reflect.get(name in changes ? changes : target, name, target);
      return typeof value === "function" ? (value.bind(target) as unknown) : value;
    },
  });
}

/** A store that counts what it is asked to open. */
export function counted(store: ArtifactStore) {
  const opened: string[] = [];
  const open: ArtifactStore["open"] = (of, reference, signal) => {
    opened.push(reference.filename);
    return store.open(of, reference, signal);
  };
  return { store: altered(store, { open }), opened };
}

/** Saves a file whose bytes are all alike. */
export async function saveBytes(
  store: ArtifactStore,
  filename: string,
  sizeBytes: number,
): Promise<void> {
  await store.save(scope, filename, sourceOf(Buffer.alloc(sizeBytes, filename)), text, never);
}

/** The content of the first version. */
export async function readBytes(store: ArtifactStore, filename: string): Promise<Buffer> {
  return buffer((await store.open(scope, { filename, version: 0 }, never)).body);
}
