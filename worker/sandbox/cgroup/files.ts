/**
 * The files of control groups: each group is a directory, and the kernel makes and removes the
 * files in it (cgroups(7)).
 */
import {
  closeSync,
  constants,
  mkdirSync,
  openSync,
  readFileSync,
  readdirSync,
  rmdirSync,
  write,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { readText } from "../proc/files.ts";

const writeAsync = promisify<number, string>(write);

/**
 * What is done with them. But for {@link move} it is synchronous: it takes microseconds and no
 * disk, and a promise for each step would cost more than the step. Everything that does not read
 * throws the system's error.
 */
export class CgroupFiles {
  readonly #root: string;

  /**
   * @param root what stands before every path: a directory that holds a recorded tree, or the
   *   host's own root
   */
  constructor(root = "/") {
    this.#root = root;
  }

  /**
   * The text of a file; undefined where it cannot be read, as when the group or this kernel's
   * feature is not there.
   */
  read(path: string): string | undefined {
    try {
      return readFileSync(this.onHost(path), "latin1");
    } catch {
      return undefined;
    }
  }

  /** The same of a file that the kernel writes at once, for a third of the price. */
  readRecord(path: string): string | undefined {
    try {
      return readText(this.onHost(path));
    } catch {
      return undefined;
    }
  }

  /** Writes to a file that is there: one text is one request to the kernel. */
  write(path: string, text: string): void {
    const descriptor = openSync(this.onHost(path), constants.O_WRONLY);
    try {
      writeSync(descriptor, text);
    } finally {
      closeSync(descriptor);
    }
  }

  /**
   * Moves a process to a group by writing its number to a file. Not in this thread: the kernel
   * waits for all processors to pass by first, some 10 ms, unless another process of the host was
   * moved right before.
   */
  async move(path: string, pid: number): Promise<void> {
    const descriptor = openSync(this.onHost(path), constants.O_WRONLY);
    try {
      await writeAsync(descriptor, String(pid));
    } finally {
      closeSync(descriptor);
    }
  }

  /** Makes a group. */
  make(directory: string): void {
    mkdirSync(this.onHost(directory));
  }

  /** Removes a group. Throws EBUSY while a process or another group is in it. */
  remove(directory: string): void {
    rmdirSync(this.onHost(directory));
  }

  /** Names of the groups in a group; none where it cannot be read. */
  groupsIn(directory: string): readonly string[] {
    try {
      const entries = readdirSync(this.onHost(directory), { withFileTypes: true });
      return entries.filter((entry) => entry.isDirectory()).map(({ name }) => name);
    } catch {
      return [];
    }
  }

  /**
   * Processes in a group, as this worker numbers them. Those of which it cannot see the number are
   * 0.
   */
  processesIn(directory: string): readonly number[] {
    const text = this.read(join(directory, "cgroup.procs")) ?? "";
    return text.split("\n").filter(Boolean).map(Number);
  }

  /** Where a path of the tree is for this process. */
  protected onHost(path: string): string {
    return join(this.#root, path);
  }
}

/** Whether an error is the system's, with one of these codes. */
export function isErrno(error: unknown, ...codes: readonly string[]): boolean {
  return codes.includes((error as NodeJS.ErrnoException).code ?? "");
}
