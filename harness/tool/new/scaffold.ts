/**
 * What a new tool consists of.
 */
import type { ManifestEntry } from "./manifest-entry.ts";

/** A file to be. */
export interface ScaffoldFile {
  /** Below the directory of the language. */
  readonly name: string;
  readonly text: string;
  /** Permissions; those of any new file unless given. */
  readonly mode?: number;
}

/** A new tool. */
export interface Scaffold {
  /** The tool itself first, its test last. */
  readonly files: readonly ScaffoldFile[];
  /** What its entry in the manifest has of its own. */
  readonly entry: ManifestEntry;
  /** Names of the tools that the entry makes. */
  readonly tools: readonly string[];
  /** As `tool run` takes it, from the directory of the language on. */
  readonly target: string;
  /** Options of a call that succeeds, for a command line, where the tool is in this file. */
  readonly call: (path: string) => string;
  /** The command that builds it from the file of this path; absent where it runs as it is. */
  readonly buildCommand?: (path: string) => string;
}
