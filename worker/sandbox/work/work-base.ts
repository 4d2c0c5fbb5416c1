/**
 * Prepares `SANDBOX_WORK_DIR`, the base of the work directories of all workers on this host.
 */
import { chmod, mkdir, stat } from "node:fs/promises";
import { dirname } from "node:path";
import { firstPrivateDirectory } from "../path-permissions.ts";

/** Mode of directories that the sandboxes' uid passes. */
export const passable = 0o711;

/**
 * Creates the base and missing parents, passable for other users under any umask. Rejects with an
 * error that names the directory, and creates nothing where the uid `ownerId` cannot pass.
 */
export async function prepareWorkBase(base: string, ownerId: number | undefined): Promise<void> {
  const { existing, missing } = await levelsOf(base);
  if (ownerId !== undefined) await requirePassable(existing, ownerId);
  // Not by Node's recursive mkdir, which never ends where no directory can be made, such as below
  // /proc.
  for (const level of missing) if (await makeDirectory(level)) await chmod(level, passable);
}

/** The nearest existing directory of `path`, and the missing levels, uppermost first. */
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

/** Creates one directory; false when another worker has. */
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

/** bubblewrap can bind only paths that the sandboxes' uid can pass. */
async function requirePassable(directory: string, ownerId: number): Promise<void> {
  const barrier = await firstPrivateDirectory(directory);
  if (barrier === undefined) return;
  throw new Error(
    `${barrier} is private, and sandboxes run as uid ${ownerId}; choose a directory that uid can reach`,
  );
}
