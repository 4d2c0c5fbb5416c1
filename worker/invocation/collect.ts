/**
 * Saves what a tool left in `output/` as artifacts.
 */
import { type ArtifactScope, type ArtifactStore, StoreError } from "../artifacts/store.ts";
import { quote } from "../artifacts/scope.ts";
import { guessMimeType } from "../artifacts/mime.ts";
import { InvocationError } from "../protocol/errors.ts";
import type { CreatedArtifact } from "../protocol/invocation.ts";
import type { Limits } from "../protocol/resource-limits.ts";
import type { LeftFile, LeftOutputs, WorkDir } from "../sandbox/work/work-dir.ts";
import type { Logger } from "../telemetry/logger.ts";
import type { OutputNote, OutputNotes } from "./result.ts";

/** Output files of one call. */
export const maxOutputFiles = 100;
/** Bytes of all output files of one call, in multiples of the profile's largest file. */
const maxTotalFileSizes = 4;

/** Names of left-out outputs that are logged: a tool chooses them, and how many there are. */
const maxLoggedNames = 10;

/** Where outputs go and what bounds them. */
export interface Collection {
  readonly store: Pick<ArtifactStore, "save">;
  readonly scope: ArtifactScope;
  readonly limits: Pick<Limits, "fileSizeBytes">;
  readonly log: Logger;
}

/**
 * The regular files directly in `output/`, which are opened from now on. To be made when no process of the sandbox is alive.
 * Its owner disposes it, which closes them.
 */
export class Outputs implements AsyncDisposable {
  readonly #left: Promise<LeftOutputs>;

  constructor(workDir: Pick<WorkDir, "leftOutputs">) {
    this.#left = workDir.leftOutputs(maxOutputFiles + 1);
    // Whoever asks for them is told.
    this.#left.catch(() => undefined);
  }

  /** Waits until they are open. Throws InvocationError `ARTIFACT_ERROR` when the directory cannot be read. */
  async left(): Promise<LeftOutputs> {
    try {
      return await this.#left;
    } catch (error) {
      throw refused("the output directory cannot be read", error);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const { files } = await this.#left.catch(() => ({ files: [] }));
    await Promise.all(files.map(({ handle }) => handle.close()));
  }
}

/**
 * Saves outputs, in order of name. Throws InvocationError `ARTIFACT_ERROR` naming the file for one that cannot be saved, one
 * that is too large, or too many.
 */
export async function collectOutputs(
  { files, skipped }: LeftOutputs,
  notes: OutputNotes,
  collection: Collection,
  signal: AbortSignal,
): Promise<readonly CreatedArtifact[]> {
  if (skipped.length > 0) {
    const { length: count } = skipped;
    collection.log.warn(
      { count, names: skipped.slice(0, maxLoggedNames) },
      "outputs that are not regular files were left out",
    );
  }
  checkSizes(files, collection.limits.fileSizeBytes);
  const created: CreatedArtifact[] = [];
  for (const file of files) {
    created.push(await save(file, notes.get(file.name), collection, signal));
  }
  return created;
}

function checkSizes(files: readonly LeftFile[], maxFileBytes: number): void {
  if (files.length > maxOutputFiles) {
    throw refused(`more than ${maxOutputFiles} output files`);
  }
  let totalBytes = 0;
  for (const { name, sizeBytes } of files) {
    // The apparent size: a sparse file is as large to its reader as it says.
    if (sizeBytes > maxFileBytes) {
      throw refused(
        `output ${quote(name)} has ${sizeBytes} bytes, at most ${maxFileBytes} are allowed`,
      );
    }
    totalBytes += sizeBytes;
  }
  if (totalBytes > maxFileBytes * maxTotalFileSizes) {
    throw refused(
      `outputs have ${totalBytes} bytes together, at most ${maxFileBytes * maxTotalFileSizes} are allowed`,
    );
  }
}

async function save(
  file: LeftFile,
  note: OutputNote | undefined,
  { store, scope }: Collection,
  signal: AbortSignal,
): Promise<CreatedArtifact> {
  const mimeType = note?.mimeType ?? guessMimeType(file.name);
  const source = {
    sizeBytes: file.sizeBytes,
    open: () => file.handle.createReadStream({ start: 0, autoClose: false }),
  };
  try {
    const { version, sizeBytes } = await store.save(scope, file.name, source, { mimeType }, signal);
    return { filename: file.name, version, mimeType, sizeBytes, description: note?.description };
  } catch (error) {
    if (!(error instanceof StoreError)) throw error;
    throw refused(`output ${quote(file.name)} could not be saved: ${error.message}`, error);
  }
}

function refused(reason: string, cause?: unknown): InvocationError {
  return new InvocationError("ARTIFACT_ERROR", `Artifacts could not be saved: ${reason}`, {
    cause,
  });
}
