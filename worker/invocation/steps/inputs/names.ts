/**
 * File names of input artifacts in `input/`.
 */
import { userPrefix } from "../../../artifacts/scope.ts";
import { InvocationError } from "../../../protocol/errors.ts";

/** Longest file name of an input artifact, in bytes: NAME_MAX of Linux file systems. */
const maxNameBytes = 255;

/** Bytes of the longest `NUMBER-` prefix; a call has at most some thousand inputs. */
const maxPrefixBytes = 6;

/** An `ARTIFACT_ERROR` that names parameter and artifact. */
export function notLoaded(
  parameter: string,
  filename: string,
  reason: string,
  cause?: unknown,
): InvocationError {
  const message = `Artifact "${filename}" for parameter "${parameter}" could not be loaded: ${reason}`;
  return new InvocationError("ARTIFACT_ERROR", message, { cause });
}

/** `RESOURCE_EXHAUSTED`: the same call may run later. */
export function noDisk(filename: string, reason: string, cause?: unknown): InvocationError {
  const message = `Insufficient disk space for artifact "${filename}": ${reason}`;
  return new InvocationError("RESOURCE_EXHAUSTED", message, { cause });
}

/**
 * The artifact's own name, with `user:`, where safe and free, so that tools see the name and the
 * extension that they expect.
 */
export class InputNames {
  readonly #assigned = new Set<string>();

  /** A free name. Throws InvocationError `ARTIFACT_ERROR` for a name that no file can have. */
  assign(parameter: string, filename: string): string {
    const bare = withoutPrefix(filename);
    if (!isName(bare)) {
      throw notLoaded(parameter, filename, "its name cannot be a file name");
    }
    if (Buffer.byteLength(bare) > maxNameBytes) {
      throw notLoaded(parameter, filename, `its name is longer than ${maxNameBytes} bytes`);
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

/** Whether an artifact can have this filename. */
export function isFileName(filename: string): boolean {
  const bare = withoutPrefix(filename);
  return isName(bare) && Buffer.byteLength(bare) <= maxNameBytes;
}

function withoutPrefix(filename: string): string {
  return filename.startsWith(userPrefix) ? filename.slice(userPrefix.length) : filename;
}

/** Lone surrogates all map to one name on disk, so they are refused. */
function isName(name: string): boolean {
  return !["", ".", ".."].includes(name) && !/[/\\\p{Cc}]/u.test(name) && name.isWellFormed();
}

/** Keeps the end of a name with its extension; cuts between characters. */
function shortened(name: string, maxBytes: number): string {
  let cut = name;
  while (Buffer.byteLength(cut) > maxBytes) cut = [...cut].slice(1).join("");
  return cut;
}
