/**
 * Removes trees whatever a tool made of them, at a cost to this process that does not grow with them.
 */
import { opendir, rm } from "node:fs/promises";
import { join } from "node:path";
import { Slots } from "../support/slots.ts";
import { startSubprocess } from "./subprocess.ts";

/**
 * Entries up to which Node removes a tree, which needs no process. It holds every entry in memory and starts to remove
 * all of them at once, so that a large tree would keep this process from everything else for seconds.
 */
export const maxEntriesForNode = 100;
/** Processes of one remover at once; trees that are small do not wait for them. */
export const maxRemovalProcesses = 4;
/** Milliseconds one of them may take: some millions of files on a slow disk. */
const processTimeoutMs = 300_000;

const neverAborted = new AbortController().signal;

/** Removes trees, large ones in a bounded number of processes. */
export class TreeRemover {
  /** Removals are never refused: their number is for those to bound who make the trees. */
  readonly #processes = new Slots({ capacity: maxRemovalProcesses, maxWaiting: Infinity });

  /** Removes what is at `path`, if anything, following no link. Rejects when something of it remains. */
  async remove(path: string): Promise<void> {
    if ((await isSmall(path)) && (await removeWithNode(path))) return;
    using _process = await this.#processes.acquire(neverAborted);
    await removeWithProcess(path);
  }
}

/** Whether a tree has few entries on all its levels together; no look goes further than to these. */
async function isSmall(path: string): Promise<boolean> {
  let entries = 0;
  const directories = [path];
  try {
    for (const directory of directories) {
      for await (const entry of await opendir(directory)) {
        if (++entries > maxEntriesForNode) return false;
        if (entry.isDirectory()) directories.push(join(directory, entry.name));
      }
    }
    return true;
  } catch (error) {
    // Where there is nothing, Node has nothing to do; what cannot be looked into takes rm(1).
    return (error as NodeJS.ErrnoException).code === "ENOENT";
  }
}

async function removeWithNode(path: string): Promise<boolean> {
  return rm(path, { recursive: true, force: true }).then(
    () => true,
    () => false,
  );
}

/** rm(1) walks by descriptor, so that no depth is too great; what is locked is opened where the owner may. */
async function removeWithProcess(path: string): Promise<void> {
  const remove = async () => run("/usr/bin/rm", ["-rf", "--", path]);
  if ((await remove()) === undefined) return;
  await run("/usr/bin/chmod", ["-R", "u+rwx", "--", path]);
  const problem = await remove();
  if (problem !== undefined) throw new Error(`cannot remove ${path}: ${problem}`);
}

/** Runs a command to its end; what it said last when it failed. */
async function run(file: string, argv: readonly string[]): Promise<string | undefined> {
  const child = await startSubprocess({ file, argv, env: {} });
  const timer = setTimeout(() => child.kill("SIGKILL"), processTimeoutMs);
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
