/**
 * Checks the size of content during a save.
 */
import { notSaved } from "./failures.ts";
import type { ArtifactKey } from "./scope.ts";

/** A pipeline step that throws StoreError `unavailable` unless its chunks have `sizeBytes`. */
export function exactly(
  sizeBytes: number,
  key: ArtifactKey,
): (chunks: AsyncIterable<Uint8Array>) => AsyncGenerator<Uint8Array> {
  return async function* (chunks) {
    let arrivedBytes = 0;
    for await (const chunk of chunks) {
      arrivedBytes += chunk.byteLength;
      if (arrivedBytes > sizeBytes) {
        throw notSaved(key, `more than the announced ${sizeBytes} bytes arrived`);
      }
      yield chunk;
    }
    if (arrivedBytes !== sizeBytes) {
      throw notSaved(key, `${arrivedBytes} of the announced ${sizeBytes} bytes arrived`);
    }
  };
}
