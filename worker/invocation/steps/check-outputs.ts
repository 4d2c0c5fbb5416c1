/**
 * Checks the files that a tool left in `output/` before any is saved.
 */
import { guessMimeType } from "../../artifacts/mime.ts";
import { artifactKey, quote } from "../../artifacts/scope.ts";
import { type ArtifactScope, StoreError } from "../../artifacts/store.ts";
import { InvocationError } from "../../protocol/errors.ts";
import type { CreatedArtifact } from "../../protocol/invocation.ts";
import type { Limits } from "../../protocol/resource-limits.ts";
import type { LeftFile, LeftOutputs } from "../../sandbox/work/work-dir.ts";
import { isDeceptive } from "../../support/text/deceptive.ts";
import { logEvent } from "../../telemetry/log-event.ts";
import type { Logger } from "../../telemetry/logger.ts";
import type { OutputNotes } from "./result.ts";
import type { ArtifactLimits } from "./transfers.ts";

/** Bounds the names in logs and answers, which the tool chooses. */
export const maxListedNames = 10;

/** Bounds of outputs: the operator's, and the profile's. */
export type OutputLimits = ArtifactLimits & Pick<Limits, "fileSizeBytes" | "diskBytes">;

/** Destination and bounds of outputs. */
export interface OutputRules {
  readonly scope: ArtifactScope;
  readonly limits: OutputLimits;
  readonly log: Logger;
}

/** An output that has passed every check and is not saved yet. */
export interface CheckedOutput extends Omit<CreatedArtifact, "version"> {
  readonly handle: LeftFile["handle"];
}

/**
 * Checks places, names, number and sizes of all outputs before any is saved. Throws InvocationError
 * `ARTIFACT_ERROR` naming the file.
 */
export function checkOutputs(
  { files, skipped, isCut, nested }: LeftOutputs,
  notes: OutputNotes,
  { scope, limits, log }: OutputRules,
): readonly CheckedOutput[] {
  if (nested !== undefined) {
    const { path, kind } = nested;
    const what =
      kind === "file"
        ? `output ${quote(path)} is in a sub-directory`
        : `the sub-directory ${quote(path)} of output/ is too large or too deep to be searched`;
    throw refused(`${what}, files must be directly in output/`);
  }
  if (isCut) throw refused(`output/ has ${skipped.length} or more entries that are no files`);
  if (skipped.length > 0) {
    const { length: count } = skipped;
    logEvent(log, "outputs.left_out", { count, names: skipped.slice(0, maxListedNames) });
  }
  checkSizes(files, limits);
  return files.map(({ name, handle, sizeBytes }) => {
    checkName(name, scope);
    const note = notes.get(name);
    const mimeType = note?.mimeType ?? guessMimeType(name);
    return { filename: name, mimeType, sizeBytes, description: note?.description, handle };
  });
}

/** An `ARTIFACT_ERROR` about the outputs of a call. */
export function refused(reason: string, cause?: unknown): InvocationError {
  return new InvocationError("ARTIFACT_ERROR", `Artifacts could not be saved: ${reason}`, {
    cause,
  });
}

/** Maps a StoreError to an answer; other errors pass. */
export function unsaved(name: string, error: unknown): unknown {
  if (!(error instanceof StoreError)) return error;
  return refused(`output ${quote(name)} could not be saved: ${error.message}`, error);
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

function checkSizes(files: readonly LeftFile[], limits: OutputLimits): void {
  if (files.length > limits.maxOutputs) {
    const { length } = files;
    throw refused(
      `there are ${length} output files or more, at most ${limits.maxOutputs} are allowed`,
    );
  }
  const maxFileBytes = Math.min(limits.maxBytes, limits.fileSizeBytes);
  const maxTotalBytes = Math.min(limits.callMaxBytes, limits.diskBytes);
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
  if (totalBytes > maxTotalBytes) {
    throw refused(
      `outputs have ${totalBytes} bytes together, at most ${maxTotalBytes} are allowed`,
    );
  }
}
