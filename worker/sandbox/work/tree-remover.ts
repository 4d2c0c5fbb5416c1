/**
 * Removes trees whatever a tool made of them, at a cost to this process that does not grow with
 * them.
 */
import { constants } from "node:fs";
import { open, opendir, rmdir, unlink } from "node:fs/promises";
import { join } from "node:path";
import { Semaphore } from "../../support/semaphore.ts";
import { startSubprocess } from "../subprocess.ts";
import { closeTree } from "./close-tree.ts";
import { workDirNames } from "./work-dir.ts";

/**
 * Entries up to which this process removes a tree by itself, one after the other; more are quicker
 * for a program.
 */
export const maxEntriesForNode = 100;
/** Levels up to which it does: each is a descriptor. */
const maxLevelsForNode = 5;
/** Processes of one remover at once; trees that are small do not wait for them. */
export const maxRemovalProcesses = 4;
/** Milliseconds one of them may take: some millions of files on a slow disk. */
const processTimeoutMs = 300_000;
/**
 * The same before it is made sure that nobody fills the tree meanwhile: two hundred thousand files.
 */
const trustingTimeoutMs = 1_000;

const neverAborted = new AbortController().signal;

const openDirectory = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW;

/** Removes trees, large ones in a bounded number of processes. */
export class TreeRemover {
  readonly #processes: Semaphore;
  readonly #ownerId: number | undefined;

  /**
   * @param ownerId host uid and gid of those who fill the trees, unless that is this process's own
   * @param processes for large trees; removals are not refused: their number is for those to bound
   *   who make the trees
   */
  constructor(
    ownerId?: number,
    processes = new Semaphore({ capacity: maxRemovalProcesses, maxWaiting: Infinity }),
  ) {
    this.#ownerId = ownerId;
    this.#processes = processes;
  }

  /**
   * Removes what is at `path`, if anything. Follows no link below it, also when somebody exchanges
   * directories for links meanwhile: a tool may have sent a descriptor to another one. Rejects when
   * something remains.
   */
  async remove(path: string): Promise<void> {
    if (await removePlain(path)) return;
    const budget = { entries: maxEntriesForNode };
    if (await removeSmall(path, budget, maxLevelsForNode).catch(() => false)) return;
    using _process = await this.#processes.acquire(neverAborted);
    await this.#removeWithProcess(path);
  }

  /**
   * rm(1) walks by descriptor, so that no depth is too great. Where it was not enough, what is
   * locked is opened, and who may still be filling the tree is shut out where this process is
   * another user.
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

/** Whether nobody fills a tree any more. */
async function isClosed(path: string): Promise<boolean> {
  return closeTree(path).then(
    () => true,
    () => false,
  );
}

/**
 * Removes a directory in which there is nothing but what every work directory has, as most calls
 * leave it. Says false when that was not all; then some of it may be gone. Names directly in a
 * directory that nobody can exchange lead nowhere else.
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

/**
 * Removes a tree from descriptor to descriptor. Rejects, or says false, when it is not one for this
 * process; then some of it may be gone.
 */
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
  const inside = `/proc/self/fd/${directory.fd}`;
  const names: string[] = [];
  for await (const { name } of await opendir(inside)) {
    if (--budget.entries < 0) return false;
    names.push(name);
  }
  for (const name of names)
    if (!(await removeSmall(`${inside}/${name}`, budget, levels - 1))) return false;
  await rmdir(path);
  return true;
}

/** Runs a command to its end; what it said last when it failed. */
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
