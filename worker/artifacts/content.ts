/**
 * Content on its way into a store: exactly as long as it was said to be.
 */
import { notSaved } from "./failures.ts";
import type { ArtifactKey } from "./scope.ts";

/**
 * A step of a pipeline that passes chunks on and counts them.
 *
 * Throws StoreError `unavailable` as soon as more than `sizeBytes` have arrived, and at the end
 * when it were fewer.
 */
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
