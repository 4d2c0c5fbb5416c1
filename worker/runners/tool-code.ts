/**
 * Where the code of a tool lies: in the directory of its language, or in its toolset.
 */
import { existsSync } from "node:fs";
import type { ToolEntry } from "../manifest/manifest.ts";
import { SandboxError } from "../sandbox/sandbox.ts";
import type { CodeSource } from "./runner.ts";

/** Code that stays as it is until it is disposed, after the sandbox is gone. */
export interface CodeLease extends Disposable {
  readonly directory: string;
  /** Whether sandboxes of every user can read it. */
  readonly isReadable: boolean;
}

/** The places that tools of a language are loaded from. */
export interface CodePlaces {
  /** Directory with the tools of the worker's own manifest. */
  readonly toolsDir: string;
  /** The code of a toolset's state; undefined where it is gone. The caller owns the lease. */
  readonly leaseToolset?:
    | ((
        of: NonNullable<ToolEntry["toolset"]>,
      ) => ({ readonly directory: string } & Disposable) | undefined)
    | undefined;
}

/** The code of a tool; the caller owns it. Throws SandboxError for a toolset that is gone. */
export function leaseCode(
  { toolset }: Pick<ToolEntry, "toolset">,
  { toolsDir, leaseToolset }: CodePlaces,
): CodeLease {
  if (toolset === undefined) {
    return { directory: toolsDir, isReadable: false, [Symbol.dispose]: () => undefined };
  }
  const lease = leaseToolset?.(toolset);
  if (lease === undefined) throw new SandboxError(`the toolset "${toolset.name}" is gone`);
  const { directory } = lease;
  return { directory, isReadable: true, [Symbol.dispose]: () => lease[Symbol.dispose]() };
}

/** What of the places may change by itself; a language may have tools of toolsets only. */
export function codeSources({ toolsDir }: CodePlaces): readonly CodeSource[] {
  return existsSync(toolsDir) ? [{ path: toolsDir, depth: "tree" }] : [];
}
