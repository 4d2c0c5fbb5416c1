/**
 * Saves the files that a tool left in `output/` as artifacts, all or none.
 */
import { type ArtifactStore, NotDeletedError, type SavedArtifact } from "../../artifacts/store.ts";
import { type ArtifactVersion, InvocationError } from "../../protocol/errors.ts";
import type { CreatedArtifact } from "../../protocol/invocation.ts";
import type { LeftOutputs, WorkDir } from "../../sandbox/work/work-dir.ts";
import type { Clock } from "../../support/clock.ts";
import { settlesWithin } from "../../support/timeout.ts";
import { logEvent } from "../../telemetry/log-event.ts";
import { type CheckedOutput, type OutputRules, refused, unsaved } from "./check-outputs.ts";
import { listedVersions, remainingOutputs } from "./remaining.ts";
import type { Transfers } from "./transfers.ts";

/** Concurrent transfers of one call. The S3 store holds up to three parts of each, 15 MiB. */
export const maxSaving = 4;

/**
 * Milliseconds for deleting the outputs of a failed call, for which its answer waits: before saving
 * is aborted, and after. After the abort, look-ups, deletions and the answer share five seconds.
 */
const rollbackTimeoutsMs = { saving: 3_000, ended: 2_000 };

/** Destination and bounds of outputs. */
export interface Collection extends OutputRules {
  readonly store: Pick<ArtifactStore, "save" | "deleteVersion">;
  readonly transfers: Transfers;
  readonly clock: Pick<Clock, "sleep">;
  /** Milliseconds for saving; after them the rest is aborted. */
  readonly limitMs: number;
}

/**
 * Opens the regular files directly in `output/`. Create it after the last process of the sandbox
 * has ended. Disposing closes the files.
 */
export class Outputs implements AsyncDisposable {
  readonly #left: Promise<LeftOutputs>;

  constructor(workDir: Pick<WorkDir, "leftOutputs">, maxOutputs: number) {
    this.#left = workDir.leftOutputs(maxOutputs + 1);
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

/** Those of a directory that is known to be empty. */
export const noOutputs: Pick<Outputs, "left" | typeof Symbol.asyncDispose> = {
  left: async () => ({ files: [], skipped: [], isCut: false, nested: undefined }),
  [Symbol.asyncDispose]: async () => undefined,
};

/**
 * Saves outputs several at once, all or none. Returns them in order of name. Throws InvocationError
 * naming the remaining versions: `ARTIFACT_ERROR` with the file or the exceeded limit, or with the
 * signal's reason as its cause; `INTERNAL_ERROR` for a fault.
 */
export async function saveOutputs(
  outputs: readonly CheckedOutput[],
  collection: Collection,
  signal: AbortSignal,
): Promise<readonly CreatedArtifact[]> {
  if (outputs.length === 0) return [];
  const { transfers, limitMs } = collection;
  const saved: SavedOutput[] = [];
  const over = AbortSignal.timeout(limitMs);
  const ending = AbortSignal.any([signal, over]);
  try {
    return await transfers.map(outputs, maxSaving, ending, async (output) => {
      const { filename } = output;
      // It goes on when another one fails: a cut save could leave an unknown version.
      const artifact = await save(output, collection, ending).catch((error: unknown) => {
        if (!(error instanceof NotDeletedError)) throw unsaved(filename, error);
        saved.push({ filename, artifact: error.saved });
        throw unsaved(filename, error.cause);
      });
      saved.push({ filename, artifact });
      const { handle: _handle, ...facts } = output;
      return { ...facts, version: artifact.version };
    });
  } catch (error) {
    // In the order of the outputs, whichever was saved first.
    const savedOf = Map.groupBy(saved, ({ filename }) => filename);
    const inOrder = outputs.flatMap(({ filename }) => savedOf.get(filename) ?? []);
    const remaining = await rollBack(inOrder, collection, ending);
    throw withRemaining(failureOf(error, signal, over, limitMs), remaining);
  }
}

/** Why outputs are not saved, as an answer. */
function failureOf(
  error: unknown,
  signal: AbortSignal,
  over: AbortSignal,
  limitMs: number,
): InvocationError {
  if (error instanceof InvocationError) return error;
  if (signal.aborted) return refused("the call was stopped", error);
  if (over.aborted) return refused(`it took more than the ${limitMs} ms that were left`, error);
  return new InvocationError("INTERNAL_ERROR", "The worker could not save the outputs", {
    cause: error,
  });
}

interface SavedOutput {
  readonly filename: string;
  readonly artifact: SavedArtifact;
}

function save(
  { filename, mimeType, sizeBytes, handle }: CheckedOutput,
  { store, scope }: Collection,
  signal: AbortSignal,
): Promise<SavedArtifact> {
  const source = {
    sizeBytes,
    open: () => handle.createReadStream({ start: 0, autoClose: false }),
    file: handle,
  };
  return store.save(scope, filename, source, { mimeType }, signal);
}

/**
 * Deletes the versions of a failed call: agents count versions of a file and of its
 * `.metadata.json` separately, and one extra would part them. Returns and logs what remains.
 */
async function rollBack(
  saved: readonly SavedOutput[],
  { store, scope, clock, log }: Collection,
  ending: AbortSignal,
): Promise<readonly ArtifactVersion[]> {
  const kept = new Set(saved);
  const failures: unknown[] = [];
  const over = new AbortController();
  const deleting = saved.map(async (each) => {
    try {
      await store.deleteVersion(scope, each.filename, each.artifact, over.signal);
      kept.delete(each);
    } catch (error) {
      failures.push(error);
    }
  });
  const deleted = Promise.all(deleting);
  if (!(await settlesWithin(deleted, rollbackTimeoutsMs.saving, clock, ending)))
    await settlesWithin(deleted, rollbackTimeoutsMs.ended, clock);
  over.abort(new Error("the outputs of a failed call were not taken back in time"));
  const remaining = Array.from(kept, ({ filename, artifact: { version } }) => ({
    filename,
    version,
  }));
  if (remaining.length > 0) {
    const [err, count, versions] = [failures[0], remaining.length, listedVersions(remaining)];
    logEvent(log, "outputs.not_deleted", { err, count, versions });
  }
  return remaining;
}

/** The same error, which says which versions of the call exist. */
function withRemaining(
  { code, message, cause }: InvocationError,
  remainingArtifacts: readonly ArtifactVersion[],
): InvocationError {
  const outcome = remainingOutputs(remainingArtifacts);
  return new InvocationError(code, `${message.replace(/\.$/, "")}. ${outcome}.`, {
    cause,
    remainingArtifacts,
  });
}
