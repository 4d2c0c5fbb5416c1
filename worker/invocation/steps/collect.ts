/**
 * Saves the files that a tool left in `output/` as artifacts, all or none.
 */
import { quote } from "../../artifacts/scope.ts";
import { type ArtifactStore, NotDeletedError, type SavedArtifact } from "../../artifacts/store.ts";
import { InvocationError } from "../../protocol/errors.ts";
import type { CreatedArtifact } from "../../protocol/invocation.ts";
import type { LeftOutputs, WorkDir } from "../../sandbox/work/work-dir.ts";
import type { Clock } from "../../support/clock.ts";
import { settlesWithin } from "../../support/timeout.ts";
import { logEvent } from "../../telemetry/log-event.ts";
import {
  type CheckedOutput,
  type OutputRules,
  maxListedNames,
  refused,
  unsaved,
} from "./check-outputs.ts";
import type { Transfers } from "./transfers.ts";

/** Concurrent transfers of one call. The S3 store holds up to 5 MiB for each. */
export const maxSaving = 4;

/** Milliseconds for deleting the outputs of a failed call, for which its answer waits. */
const rollbackTimeoutMs = 5_000;

/** Destination and bounds of outputs. */
export interface Collection extends OutputRules {
  readonly store: Pick<ArtifactStore, "save" | "deleteVersion">;
  readonly transfers: Transfers;
  readonly clock: Pick<Clock, "sleep">;
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

/**
 * Saves outputs several at once, all or none. Returns them in order of name. Throws InvocationError
 * `ARTIFACT_ERROR` naming the file and remaining versions, or the signal's reason.
 */
export async function saveOutputs(
  outputs: readonly CheckedOutput[],
  collection: Collection,
  signal: AbortSignal,
): Promise<readonly CreatedArtifact[]> {
  const saved: SavedOutput[] = [];
  try {
    return await collection.transfers.map(outputs, maxSaving, signal, async (output) => {
      // It goes on when another one fails: a cut save could leave an unknown version.
      const artifact = await save(output, collection, signal).catch((error: unknown) => {
        if (!(error instanceof NotDeletedError)) throw unsaved(output.filename, error);
        saved.push({ output, artifact: error.saved });
        throw unsaved(output.filename, error.cause);
      });
      saved.push({ output, artifact });
      const { handle: _handle, ...facts } = output;
      return { ...facts, version: artifact.version };
    });
  } catch (error) {
    const remaining = await rollBack(saved, collection);
    throw error instanceof InvocationError ? withRemaining(error, remaining) : error;
  }
}

interface SavedOutput {
  readonly output: CheckedOutput;
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
): Promise<readonly SavedOutput[]> {
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
  if (remaining.size > 0) {
    const [err, count, versions] = [failures[0], remaining.size, listed([...remaining])];
    logEvent(log, "outputs.not_deleted", { err, count, versions });
  }
  return [...remaining];
}

/** The same error, which says which versions of the call exist. */
function withRemaining(
  { code, message, cause }: InvocationError,
  remaining: readonly SavedOutput[],
): InvocationError {
  const more = remaining.length - maxListedNames;
  const versions = [...listed(remaining), ...(more > 0 ? [`${more} more`] : [])].join(", ");
  const outcome =
    remaining.length === 0
      ? "No output was kept"
      : `These outputs could not be deleted: ${versions}`;
  const remainingArtifacts = remaining.map(({ output: { filename }, artifact: { version } }) => ({
    filename,
    version,
  }));
  return new InvocationError(code, `${message.replace(/\.$/, "")}. ${outcome}.`, {
    cause,
    remainingArtifacts,
  });
}

function listed(outputs: readonly SavedOutput[]): readonly string[] {
  return outputs
    .slice(0, maxListedNames)
    .map(({ output, artifact }) => `${quote(output.filename)} version ${artifact.version}`);
}
