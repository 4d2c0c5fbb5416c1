/**
 * Removes hostile trees, at a bounded cost for this process.
 */
import { open, opendir, rmdir, unlink } from "node:fs/promises";
import { join } from "node:path";
import { below, openDirectory } from "../../support/files/below.ts";
import { Semaphore } from "../../support/semaphore.ts";
import { startSubprocess } from "../subprocess.ts";
import { closeTree } from "./close-tree.ts";
import { workDirNames } from "./work-dir.ts";

/** Largest number of entries that this process removes itself; rm(1) is quicker for more. */
export const maxEntriesForNode = 100;
/** Largest number of levels that it removes itself: each is a descriptor. */
const maxLevelsForNode = 5;
/** Concurrent processes of one remover; small trees do not wait for them. */
export const maxRemovalProcesses = 4;
/** Time limit of a process in milliseconds: some millions of files on a slow disk. */
const processTimeoutMs = 300_000;
/** Time limit in milliseconds before the tree is closed: two hundred thousand files. */
const trustingTimeoutMs = 1_000;

const neverAborted = new AbortController().signal;

/** Removes trees, large ones in a bounded number of processes. */
export class TreeRemover {
  readonly #processes: Semaphore;
  readonly #ownerId: number | undefined;

  /**
   * @param ownerId host uid and gid of the trees' owner, or undefined for this process's own
   * @param processes for large trees; callers bound the number of waiting removals
   */
  constructor(
    ownerId?: number,
    processes = new Semaphore({ capacity: maxRemovalProcesses, maxWaiting: Infinity }),
  ) {
    this.#ownerId = ownerId;
    this.#processes = processes;
  }

  /**
   * Removes the tree at `path`, if any. Follows no link, even when a tool exchanges directories for
   * links meanwhile. Rejects when something remains.
   */
  async remove(path: string): Promise<void> {
    if (await removePlain(path)) return;
    const budget = { entries: maxEntriesForNode };
    if (await removeSmall(path, budget, maxLevelsForNode).catch(() => false)) return;
    await this.removeLarge(path);
  }

  /** The same for a tree that has more than {@link maxEntriesForNode} entries. */
  async removeLarge(path: string): Promise<void> {
    using _process = await this.#processes.acquire(neverAborted);
    await this.#removeWithProcess(path);
  }

  /**
   * Runs rm(1), which walks any depth by descriptor. After a failure it unlocks the directories,
   * and closes the tree where its owner is another user.
   */
  async #removeWithProcess(path: string): Promise<void> {
    const remove = async (timeoutMs: number) =>
      run("/usr/bin/rm", ["-rf", "--", path], undefined, timeoutMs);
    const isOthers = this.#ownerId !== undefined;
    if ((await remove(isOthers ? trustingTimeoutMs : processTimeoutMs)) === undefined) return;
    // As the owner, since chmod(1) can be made to follow a link.
    if (!isOthers || !(await isClosed(path)))
      await run("/usr/bin/chmod", ["-R", "u+rwx", "--", path], this.#ownerId);
    const problem = await remove(processTimeoutMs);
    if (problem !== undefined) throw new Error(`cannot remove ${path}: ${problem}`);
  }
}

/** Closes a tree; false after a failure. */
async function isClosed(path: string): Promise<boolean> {
  return closeTree(path).then(
    () => true,
    () => false,
  );
}

/**
 * Removes a work directory without further entries, as most calls leave it. False when entries
 * remain. The names lie directly in a directory that no tool can exchange.
 */
async function removePlain(path: string): Promise<boolean> {
  const { input, output, args, result, status } = workDirNames;
  const removals = [
    ...[input, output].map((name) => rmdir(join(path, name))),
    ...[args, result, status].map((name) => unlink(join(path, name))),
  ];
  await Promise.allSettled(removals);
  return rmdir(path).then(
    () => true,
    () => false,
  );
}

/** Removes a small tree by descriptors. Rejects, or returns false, when entries remain. */
async function removeSmall(
  path: string,
  budget: { entries: number },
  levels: number,
): Promise<boolean> {
  const isDirectory = await unlink(path).then(
    () => false,
    (error: unknown) => {
      const { code } = error as NodeJS.ErrnoException;
      if (code === "ENOENT") return false;
      if (code === "EISDIR") return true;
      throw error;
    },
  );
  if (!isDirectory) return true;
  if (levels === 0) return false;
  await using directory = await open(path, openDirectory);
  const names: string[] = [];
  for await (const { name } of await opendir(below(directory, "."))) {
    if (--budget.entries < 0) return false;
    names.push(name);
  }
  for (const name of names)
    if (!(await removeSmall(below(directory, name), budget, levels - 1))) return false;
  await rmdir(path);
  return true;
}

/** Runs a command to its end; returns its last line of output after a failure. */
async function run(
  file: string,
  argv: readonly string[],
  uid?: number,
  timeoutMs = processTimeoutMs,
): Promise<string | undefined> {
  const child = await startSubprocess({ file, argv, env: {}, uid });
  const timer = setTimeout(() => child.kill("SIGKILL"), timeoutMs);
  try {
    const { exitCode, signal } = await child.exited;
    if (exitCode === 0) return undefined;
    await child.closed;
    const lastLine = child.output().stderr.text.trimEnd().split("\n").at(-1);
    return `${file} ended with ${exitCode ?? signal}: ${lastLine}`;
  } finally {
    clearTimeout(timer);
    child.close();
  }
}
