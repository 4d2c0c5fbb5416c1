/**
 * Checks the size of content on its way into a store.
 */
import { ArrivedBytes } from "../support/files/arrived-bytes.ts";
import { notSaved } from "./failures.ts";
import type { ArtifactKey } from "./scope.ts";

/** A pipeline step that throws StoreError `unavailable` unless its chunks have `sizeBytes`. */
export function exactly(
  sizeBytes: number,
  key: ArtifactKey,
): (chunks: AsyncIterable<Uint8Array>) => AsyncGenerator<Uint8Array> {
  return async function* (chunks) {
    const arrived = new ArrivedBytes(sizeBytes, (reason) => notSaved(key, reason));
    for await (const chunk of chunks) {
      arrived.add(chunk);
      yield chunk;
    }
    arrived.end();
  };
}
