/**
 * Stages a call's input artifacts in its work directory.
 */
import { Readable } from "node:stream";
import { isDiskFull } from "../../artifacts/failures.ts";
import { type ArtifactFacts, type ArtifactScope, StoreError } from "../../artifacts/store.ts";
import type { ArtifactReference, Invocation } from "../../protocol/invocation.ts";
import type { StagedArtifact } from "../../runners/runner.ts";
import { workDirInside } from "../../sandbox/sandbox.ts";
import type { InputContent } from "../../sandbox/work/inputs.ts";
import { type WorkDir, workDirNames } from "../../sandbox/work/work-dir.ts";
import { WrongSizeError } from "../../support/files/arrived-bytes.ts";
import type { CallArtifact, CallStore } from "../audit/audited-store.ts";
import { type InputBounds, InputBudget, type InputShare } from "./inputs/budget.ts";
import { InputNames, isFileName, noDisk, notLoaded } from "./inputs/names.ts";
import type { Transfers } from "./transfers.ts";

/** Concurrent transfers of one call. */
export const maxLoading = 8;

/** Source of referenced artifacts, and bounds on inputs. */
export interface ArtifactOrigin extends InputBounds {
  readonly store: Pick<CallStore, "open">;
  readonly scope: ArtifactScope;
  readonly transfers: Transfers;
}

/** An input with its file name in `input/`. */
interface Input {
  readonly parameter: string;
  readonly filename: string;
  readonly name: string;
  /** Undefined for an optional one that the store does not have. Throws InvocationError. */
  open(signal: AbortSignal): Promise<OpenedInput | undefined>;
}

interface OpenedInput
  extends Pick<StagedArtifact, "mimeType" | "version">, Pick<CallArtifact, "failed"> {
  readonly content: InputContent;
}

/**
 * Moves the artifacts of a call into `input/`, several at once. Returns them by parameter. Throws
 * InvocationError `ARTIFACT_ERROR` or `RESOURCE_EXHAUSTED`, which names an input: of those that are
 * missing or too large the first of the request.
 */
export async function stageArtifacts(
  invocation: Invocation,
  workDir: WorkDir,
  origin: ArtifactOrigin,
  signal: AbortSignal,
): Promise<ReadonlyMap<string, StagedArtifact>> {
  const inputs = inputsOf(invocation, origin);
  const load = async ({ parameter, filename, name, open }: Input, ending: AbortSignal) => {
    const opened = await open(ending);
    if (opened === undefined) return [];
    const { content, mimeType, version, failed } = opened;
    await workDir.writeInput(name, content, ending).catch((error: unknown) => {
      failed?.(ending.aborted ? ending.reason : error);
      ending.throwIfAborted();
      if (isDiskFull(error)) throw noDisk(filename, "the disk is full", error);
      const isPublic = error instanceof StoreError || error instanceof WrongSizeError;
      const reason = isPublic ? error.message : "its content could not be read";
      throw notLoaded(parameter, filename, reason, error);
    });
    const path = `${workDirInside}/${workDirNames.input}/${name}`;
    return [[parameter, { path, filename, mimeType, version }] as const];
  };
  return new Map((await origin.transfers.map(inputs, maxLoading, signal, load)).flat());
}

/** Preloaded inputs, then references. Checks names and known sizes. Throws InvocationError. */
function inputsOf({ preloaded, references }: Invocation, origin: ArtifactOrigin): readonly Input[] {
  const names = new InputNames();
  const budget = new InputBudget(origin);
  const inputs: Input[] = [];
  for (const [parameter, { filename, mimeType, version, bytes }] of preloaded) {
    const name = names.assign(parameter, filename);
    budget.take(parameter, filename, bytes.byteLength);
    const open = () =>
      Promise.resolve({ mimeType, version, content: { body: Readable.from([bytes]) } });
    inputs.push({ parameter, filename, name, open });
  }
  for (const [parameter, reference] of references) {
    // Preloaded content wins over a reference for the same parameter.
    if (preloaded.has(parameter)) continue;
    const { filename, isOptional = false } = reference;
    if (isOptional && !isFileName(filename)) continue;
    const name = names.assign(parameter, filename);
    const share = budget.next(parameter, filename);
    const open = (signal: AbortSignal) => openReference(origin, share, reference, signal);
    inputs.push({ parameter, filename, name, open });
  }
  return inputs;
}

/** Refuses the artifact by its announced size before a byte is read, and holds the store to it. */
async function openReference(
  { store, scope }: ArtifactOrigin,
  share: InputShare,
  reference: ArtifactReference,
  signal: AbortSignal,
): Promise<OpenedInput | undefined> {
  const accept = ({ sizeBytes }: Pick<ArtifactFacts, "sizeBytes">): Promise<void> =>
    share.take(sizeBytes, signal);
  const opened = await store
    .open(scope, reference, signal, accept)
    .catch(async (error: unknown) => {
      if (!(error instanceof StoreError)) throw error;
      const isAbsent = reference.isOptional === true && error.reason === "not-found";
      if (!isAbsent) throw await share.refusal(error.message, error, signal);
      await share.take(0, signal);
      return undefined;
    });
  if (opened === undefined) return undefined;
  const { body, version, metadata, failed } = opened;
  try {
    await accept(opened);
  } catch (error) {
    failed?.(error);
    body.destroy();
    throw error;
  }
  return { content: opened, mimeType: metadata.mimeType, version, ...(failed && { failed }) };
}
