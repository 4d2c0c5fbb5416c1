/**
 * Stages a call's input artifacts in its work directory.
 */
import { Readable } from "node:stream";
import { userPrefix } from "../../artifacts/scope.ts";
import { type ArtifactScope, type ArtifactStore, StoreError } from "../../artifacts/store.ts";
import { InvocationError } from "../../protocol/errors.ts";
import type { ArtifactReference, Invocation } from "../../protocol/invocation.ts";
import type { StagedArtifact } from "../../runners/runner.ts";
import { workDirInside } from "../../sandbox/sandbox.ts";
import { type WorkDir, workDirNames } from "../../sandbox/work/work-dir.ts";

/** Longest file name of an input artifact, in bytes: NAME_MAX of Linux file systems. */
const maxNameBytes = 255;

/** Bytes of the longest `NUMBER-` prefix; a call has at most some thousand inputs. */
const maxPrefixBytes = 6;

/** Source of referenced artifacts. */
export interface ArtifactOrigin {
  readonly store: Pick<ArtifactStore, "open">;
  readonly scope: ArtifactScope;
  /** Bytes of all referenced artifacts of a call together: the spare disk. */
  readonly maxBytes: number;
}

/**
 * Streams every artifact of a call into `input/`. Returns them by parameter. Throws InvocationError
 * `ARTIFACT_ERROR` naming parameter and artifact, or `RESOURCE_EXHAUSTED`.
 */
export async function stageArtifacts(
  invocation: Invocation,
  workDir: WorkDir,
  origin: ArtifactOrigin,
  signal: AbortSignal,
): Promise<ReadonlyMap<string, StagedArtifact>> {
  const staged = new Map<string, StagedArtifact>();
  const names = new InputNames();
  let spareBytes = origin.maxBytes;
  for (const [parameter, artifact] of invocation.preloaded) {
    const name = names.assign(parameter, artifact.filename);
    await workDir.writeInput(name, { body: Readable.from([artifact.bytes]) }, signal);
    staged.set(parameter, describe(name, artifact.filename, artifact.mimeType, artifact.version));
  }
  for (const [parameter, reference] of invocation.references) {
    // Preloaded content wins over a reference for the same parameter.
    if (staged.has(parameter)) continue;
    const name = names.assign(parameter, reference.filename);
    const opened = await openReference(origin, parameter, reference, signal);
    spareBytes -= opened.sizeBytes;
    if (spareBytes < 0) {
      opened.body.destroy();
      throw new InvocationError(
        "RESOURCE_EXHAUSTED",
        `Insufficient disk space for artifact "${reference.filename}" of ${opened.sizeBytes} bytes`,
      );
    }
    await workDir.writeInput(name, opened, signal).catch((error: unknown) => {
      signal.throwIfAborted();
      throw notLoaded(parameter, reference.filename, "its content could not be read", error);
    });
    const { mimeType } = opened.metadata;
    staged.set(parameter, describe(name, reference.filename, mimeType, opened.version));
  }
  return staged;
}

function describe(
  name: string,
  filename: string,
  mimeType: string,
  version: number,
): StagedArtifact {
  return {
    path: `${workDirInside}/${workDirNames.input}/${name}`,
    filename,
    mimeType,
    version,
  };
}

async function openReference(
  origin: ArtifactOrigin,
  parameter: string,
  reference: ArtifactReference,
  signal: AbortSignal,
) {
  try {
    return await origin.store.open(origin.scope, reference, signal);
  } catch (error) {
    if (!(error instanceof StoreError)) throw error;
    throw notLoaded(parameter, reference.filename, error.message, error);
  }
}

function notLoaded(
  parameter: string,
  filename: string,
  reason: string,
  cause: unknown,
): InvocationError {
  const message = `Artifact "${filename}" for parameter "${parameter}" could not be loaded: ${reason}`;
  return new InvocationError("ARTIFACT_ERROR", message, { cause });
}

/**
 * File names in `input/`: the artifact's own, with `user:`, where safe and free, so that tools see
 * the name and the extension that they expect.
 */
class InputNames {
  readonly #assigned = new Set<string>();

  assign(parameter: string, filename: string): string {
    const bare = filename.startsWith(userPrefix) ? filename.slice(userPrefix.length) : filename;
    if (!isFileName(bare)) {
      throw notLoaded(parameter, filename, "its name cannot be a file name", undefined);
    }
    if (Buffer.byteLength(bare) > maxNameBytes) {
      throw notLoaded(
        parameter,
        filename,
        `its name is longer than ${maxNameBytes} bytes`,
        undefined,
      );
    }
    // The store keeps the prefix apart, so that the bare name may have the full length.
    const own = Buffer.byteLength(filename) > maxNameBytes ? bare : filename;
    // Two parameters may name the same artifact, or two versions of it.
    let name = own;
    for (let number = 1; this.#assigned.has(name); number++) {
      name = `${number}-${shortened(own, maxNameBytes - maxPrefixBytes)}`;
    }
    this.#assigned.add(name);
    return name;
  }
}

/** Lone surrogates all map to one name on disk, so they are refused. */
function isFileName(name: string): boolean {
  return !["", ".", ".."].includes(name) && !/[/\\\p{Cc}]/u.test(name) && name.isWellFormed();
}

/** Keeps the end of a name with its extension; cuts between characters. */
function shortened(name: string, maxBytes: number): string {
  let cut = name;
  while (Buffer.byteLength(cut) > maxBytes) cut = [...cut].slice(1).join("");
  return cut;
}
