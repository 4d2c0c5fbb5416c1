/**
 * The directory that holds the work directories of every worker on this host (`SANDBOX_WORK_DIR`).
 */
import { chmod, mkdir, stat } from "node:fs/promises";
import { dirname } from "node:path";
import { firstPrivateDirectory } from "../path-permissions.ts";

/** Mode of a directory that the sandbox's uid has to pass. */
export const passable = 0o711;

/**
 * Makes the base and what is missing above it, open for other users to pass whatever the umask
 * says. Nothing is made where `ownerId`, the uid of the sandboxes if it is not the worker's own,
 * could not get to it. Rejects with an error that names the directory at fault.
 */
export async function prepareWorkBase(base: string, ownerId: number | undefined): Promise<void> {
  const { existing, missing } = await levelsOf(base);
  if (ownerId !== undefined) await requirePassable(existing, ownerId);
  // Not by Node's recursive mkdir, which never ends where no directory can be made, such as below
  // /proc.
  for (const level of missing) if (await makeDirectory(level)) await chmod(level, passable);
}

/**
 * The nearest directory on the way to `path` that is there, and what is missing from it on,
 * uppermost first.
 */
async function levelsOf(path: string): Promise<{ existing: string; missing: readonly string[] }> {
  const missing: string[] = [];
  for (let level = path; ; level = dirname(level)) {
    const stats = await stat(level).catch((error: unknown) => {
      if (isErrno(error, "ENOENT", "ENOTDIR")) return undefined;
      throw error;
    });
    if (stats?.isDirectory()) return { existing: level, missing };
    if (stats !== undefined) throw new Error(`${level} is not a directory`);
    missing.unshift(level);
  }
}

/** Makes one directory; false when another worker was quicker. */
async function makeDirectory(path: string): Promise<boolean> {
  try {
    await mkdir(path, { mode: passable });
    return true;
  } catch (error) {
    if (!isErrno(error, "EEXIST")) throw error;
    // Also a link that leads nowhere exists.
    if (!(await stat(path)).isDirectory()) throw error;
    return false;
  }
}

function isErrno(error: unknown, ...codes: readonly string[]): boolean {
  return codes.includes((error as NodeJS.ErrnoException).code ?? "");
}

/** bubblewrap can bind only what the sandbox's uid can get to. */
async function requirePassable(directory: string, ownerId: number): Promise<void> {
  const barrier = await firstPrivateDirectory(directory);
  if (barrier === undefined) return;
  throw new Error(
    `${barrier} is private, and sandboxes run as uid ${ownerId}; choose a directory that uid can reach`,
  );
}
