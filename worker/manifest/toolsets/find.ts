/**
 * Finds the toolsets of a directory, with a state of each that differs after a change.
 */
import { constants } from "node:fs";
import { lstat, readdir } from "node:fs/promises";
import { join } from "node:path";
import { CopyError, ToolsetError } from "./budget.ts";
import { isToolsetName } from "./part.ts";
import type { ToolsetSource } from "./snapshots.ts";
import { treeState } from "./tree.ts";

/** Largest number of toolsets. */
export const maxToolsets = 100;
/** A toolset as it is now. */
export interface FoundToolset {
  readonly state: string;
  /** Undefined where it is none. */
  readonly source: ToolsetSource | undefined;
  /** Why it cannot be read. */
  readonly problem?: string;
}

/** The toolsets of a directory as they are now. */
export interface FoundToolsets {
  readonly byName: ReadonlyMap<string, FoundToolset>;
  /** The directories that hold them, this one included, for file events. */
  readonly directories: readonly string[];
}

/**
 * Rejects with the system's error where the directory cannot be read, and with the signal's reason.
 */
export async function findToolsets(directory: string, signal: AbortSignal): Promise<FoundToolsets> {
  const byName = new Map<string, FoundToolset>();
  const watched = [directory];
  for (const [name, source] of await listToolsets(directory)) {
    signal.throwIfAborted();
    if (typeof source === "string") {
      byName.set(name, { state: source, source: undefined, problem: source });
      continue;
    }
    try {
      const { state, directories } = await stateOf(source);
      watched.push(...directories);
      byName.set(name, { state, source });
    } catch (error) {
      const problem = problemOf(error);
      byName.set(name, { state: problem, source, problem });
    }
  }
  return { byName, directories: watched };
}

/** The toolsets by name, or why they are none. */
async function listToolsets(
  directory: string,
): Promise<ReadonlyMap<string, ToolsetSource | string>> {
  const sources = new Map<string, ToolsetSource | string>();
  const entries = await readdir(directory, { withFileTypes: true });
  for (const entry of entries.sort((a, b) => (a.name < b.name ? -1 : 1))) {
    if (entry.name.startsWith(".")) continue;
    const kind = entry.isDirectory() ? "directory" : "archive";
    const name = kind === "archive" ? entry.name.replace(/\.zip$/, "") : entry.name;
    if (entry.isSymbolicLink()) sources.set(name, "is a link");
    else if (kind === "archive" && !entry.name.endsWith(".zip")) continue;
    else if (!isToolsetName(name)) sources.set(name, nameProblem);
    else if (sources.has(name)) sources.set(name, "is there twice, as directory and ZIP file");
    else if (sources.size >= maxToolsets) sources.set(name, `is one of more than ${maxToolsets}`);
    else sources.set(name, { path: join(directory, entry.name), kind });
    if (sources.size > 2 * maxToolsets) break;
  }
  return sources;
}

const nameProblem =
  "has a name that is none: 1 to 50 letters, digits, - and single _ inside, a letter or digit first";

/** A state that differs after a change. Throws ToolsetError, or the system's error. */
export async function stateOf({
  path,
  kind,
}: ToolsetSource): Promise<{ readonly state: string; readonly directories: readonly string[] }> {
  if (kind === "directory") {
    const { fingerprint, directories } = await treeState(path);
    return { state: fingerprint, directories };
  }
  const { mode, size, mtimeMs, ctimeMs, ino } = await lstat(path);
  if ((mode & constants.S_IFMT) !== constants.S_IFREG) throw new ToolsetError("is no file");
  return { state: [size, mtimeMs, ctimeMs, ino].join(), directories: [] };
}

/** In words without paths of the host. Throws an error that is no answer of the system. */
export function problemOf(error: unknown): string {
  if (error instanceof ToolsetError || error instanceof CopyError) return error.message;
  const { code } = error as NodeJS.ErrnoException;
  if (code === "ENOENT") return "does not exist";
  if (code === undefined) throw error;
  return `cannot be read (${code})`;
}
