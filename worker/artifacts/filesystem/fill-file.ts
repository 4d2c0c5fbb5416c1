/**
 * Fills a new file with the content of a save: by the kernel where it can.
 */
import type { FileHandle } from "node:fs/promises";
import { pipeline } from "node:stream/promises";
import type { FileCopier } from "../../support/files/copy-file.ts";
import { exactly } from "../content.ts";
import type { ArtifactKey } from "../scope.ts";
import type { ArtifactSource } from "../store.ts";

/** Content, and how it is copied. */
export interface Filling {
  readonly source: ArtifactSource;
  readonly key: ArtifactKey;
  readonly copier: FileCopier;
}

/** Rejects with StoreError for another size, the system's error, or the signal's reason. */
export async function fillFile(
  target: FileHandle,
  { source, key, copier }: Filling,
  signal: AbortSignal,
): Promise<void> {
  const { file, sizeBytes } = source;
  if (file !== undefined && (await copier.copy({ source: file, target, sizeBytes }, signal)))
    return;
  const write = (chunks: AsyncIterable<Uint8Array>): Promise<void> => target.writeFile(chunks);
  await pipeline(source.open(), exactly(sizeBytes, key), write, { signal });
}
