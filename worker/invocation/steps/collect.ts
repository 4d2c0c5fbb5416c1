/**
 * Saves the files that a tool left in `output/` as artifacts.
 */
import { guessMimeType } from "../../artifacts/mime.ts";
import { artifactKey, quote } from "../../artifacts/scope.ts";
import {
  type ArtifactScope,
  type ArtifactStore,
  type SavedArtifact,
  StoreError,
} from "../../artifacts/store.ts";
import { InvocationError } from "../../protocol/errors.ts";
import type { CreatedArtifact } from "../../protocol/invocation.ts";
import type { Limits } from "../../protocol/resource-limits.ts";
import type { LeftFile, LeftOutputs, WorkDir } from "../../sandbox/work/work-dir.ts";
import type { Clock } from "../../support/clock.ts";
import { isDeceptive } from "../../support/text/deceptive.ts";
import { settlesWithin } from "../../support/timeout.ts";
import { logEvent } from "../../telemetry/log-event.ts";
import type { Logger } from "../../telemetry/logger.ts";
import type { OutputNotes } from "./result.ts";

/** Output files of one call. */
export const maxOutputFiles = 100;
/** Bytes of all output files of one call, in multiples of the profile's largest file. */
const maxTotalFileSizes = 4;

/** Bounds the names in the log, which the tool chooses. */
const maxLoggedNames = 10;

/** Milliseconds for deleting the outputs of a failed call, for which its answer waits. */
const rollbackTimeoutMs = 5_000;

/** Destination and bounds of outputs. */
export interface Collection {
  readonly store: Pick<ArtifactStore, "save" | "deleteVersion">;
  readonly scope: ArtifactScope;
  readonly limits: Pick<Limits, "fileSizeBytes">;
  readonly clock: Pick<Clock, "sleep">;
  readonly log: Logger;
}

/** An output that has passed every check and is not saved yet. */
export interface CheckedOutput extends Omit<CreatedArtifact, "version"> {
  readonly handle: LeftFile["handle"];
}

/**
 * Opens the regular files directly in `output/`. Create it after the last process of the sandbox
 * has ended. Disposing closes the files.
 */
export class Outputs implements AsyncDisposable {
  readonly #left: Promise<LeftOutputs>;

  constructor(workDir: Pick<WorkDir, "leftOutputs">) {
    this.#left = workDir.leftOutputs(maxOutputFiles + 1);
    // `left` rejects.
    this.#left.catch(() => undefined);
  }

  /** Throws InvocationError `ARTIFACT_ERROR` for an unreadable directory. */
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
 * Checks names, number and sizes of all outputs before any is saved. Throws InvocationError
 * `ARTIFACT_ERROR` naming the file.
 */
export function checkOutputs(
  { files, skipped }: LeftOutputs,
  notes: OutputNotes,
  { scope, limits, log }: Pick<Collection, "scope" | "limits" | "log">,
): readonly CheckedOutput[] {
  if (skipped.length > 0) {
    const { length: count } = skipped;
    logEvent(log, "outputs.left_out", { count, names: skipped.slice(0, maxLoggedNames) });
  }
  checkSizes(files, limits.fileSizeBytes);
  return files.map(({ name, handle, sizeBytes }) => {
    checkName(name, scope);
    const note = notes.get(name);
    const mimeType = note?.mimeType ?? guessMimeType(name);
    return { filename: name, mimeType, sizeBytes, description: note?.description, handle };
  });
}

/**
 * Saves outputs in order of name, all or none. Throws InvocationError `ARTIFACT_ERROR` naming the
 * file, or the signal's reason.
 */
export async function saveOutputs(
  outputs: readonly CheckedOutput[],
  collection: Collection,
  signal: AbortSignal,
): Promise<readonly CreatedArtifact[]> {
  const saved: SavedOutput[] = [];
  try {
    for (const output of outputs) {
      saved.push({ output, artifact: await save(output, collection, signal) });
    }
  } catch (error) {
    await rollBack(saved, collection);
    throw error;
  }
  return saved.map(({ output: { handle: _handle, ...facts }, artifact: { version } }) => ({
    ...facts,
    version,
  }));
}

interface SavedOutput {
  readonly output: CheckedOutput;
  readonly artifact: SavedArtifact;
}

function checkName(name: string, scope: ArtifactScope): void {
  if (isDeceptive(name)) {
    throw refused(
      `the name of output ${quote(name)} holds control, bidirectional or invisible characters`,
    );
  }
  try {
    artifactKey(scope, name);
  } catch (error) {
    throw unsaved(name, error);
  }
}

function checkSizes(files: readonly LeftFile[], maxFileBytes: number): void {
  if (files.length > maxOutputFiles) {
    throw refused(`more than ${maxOutputFiles} output files`);
  }
  let totalBytes = 0;
  for (const { name, sizeBytes } of files) {
    // The apparent size: readers of a sparse file get all of it.
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
  { filename, mimeType, sizeBytes, handle }: CheckedOutput,
  { store, scope }: Collection,
  signal: AbortSignal,
): Promise<SavedArtifact> {
  const source = {
    sizeBytes,
    open: () => handle.createReadStream({ start: 0, autoClose: false }),
    file: handle,
  };
  try {
    return await store.save(scope, filename, source, { mimeType }, signal);
  } catch (error) {
    throw unsaved(filename, error);
  }
}

/**
 * Deletes the versions of a failed call: agents count versions of a file and of its
 * `.metadata.json` separately, and one extra would part them. Logs versions that remain.
 */
async function rollBack(
  saved: readonly SavedOutput[],
  { store, scope, clock, log }: Collection,
): Promise<void> {
  const remaining = new Set(saved);
  const failures: unknown[] = [];
  const over = new AbortController();
  const deleting = saved.map(async (each) => {
    try {
      await store.deleteVersion(scope, each.output.filename, each.artifact, over.signal);
      remaining.delete(each);
    } catch (error) {
      failures.push(error);
    }
  });
  await settlesWithin(Promise.all(deleting), rollbackTimeoutMs, clock);
  over.abort(new Error("the outputs of a failed call were not taken back in time"));
  if (remaining.size === 0) return;
  const versions = [...remaining].map(
    ({ output, artifact }) => `${quote(output.filename)} version ${artifact.version}`,
  );
  logEvent(log, "outputs.not_deleted", {
    err: failures[0],
    count: remaining.size,
    versions: versions.slice(0, maxLoggedNames),
  });
}

/** Maps a StoreError to an answer; other errors pass. */
function unsaved(name: string, error: unknown): unknown {
  if (!(error instanceof StoreError)) return error;
  return refused(`output ${quote(name)} could not be saved: ${error.message}`, error);
}

function refused(reason: string, cause?: unknown): InvocationError {
  return new InvocationError("ARTIFACT_ERROR", `Artifacts could not be saved: ${reason}`, {
    cause,
  });
}
