/**
 * The files of control groups: each group is a directory whose files the kernel makes (cgroups(7)).
 */
import {
  closeSync,
  constants,
  mkdirSync,
  openSync,
  readdirSync,
  rmdirSync,
  write,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { OpenFile, readText } from "../proc/files.ts";

const writeAsync = promisify<number, string>(write);

/**
 * Synchronous but for {@link move}: an operation takes microseconds, and promises cost more. What
 * does not read throws the system's error.
 */
export class CgroupFiles {
  readonly #root: string;

  /** @param root the host's own, or a directory with a recorded tree */
  constructor(root = "/") {
    this.#root = root;
  }

  /** Undefined where it cannot be read, as when this kernel does not have the file. */
  read(path: string): string | undefined {
    try {
      return readText(this.onHost(path));
    } catch {
      return undefined;
    }
  }

  /** Writes to an existing file: one text is one request to the kernel. */
  write(path: string, text: string): void {
    const descriptor = openSync(this.onHost(path), constants.O_WRONLY);
    try {
      writeSync(descriptor, text);
    } finally {
      closeSync(descriptor);
    }
  }

  /**
   * Moves a process to a group, in a thread: the kernel waits for all processors, some 10 ms,
   * unless another process was moved right before.
   */
  async move(path: string, pid: number): Promise<void> {
    const descriptor = openSync(this.onHost(path), constants.O_WRONLY);
    try {
      await writeAsync(descriptor, String(pid));
    } finally {
      closeSync(descriptor);
    }
  }

  /** Opens a counter; the caller owns it. Undefined where it cannot be read. */
  openCounter(path: string): OpenFile | undefined {
    try {
      return new OpenFile(openSync(this.onHost(path), constants.O_RDONLY));
    } catch {
      return undefined;
    }
  }

  /** Opens a peak of memory; the caller owns it. Undefined where there is no such file. */
  openPeak(path: string): MemoryPeak | undefined {
    try {
      return new MemoryPeak(openSync(this.onHost(path), constants.O_RDWR));
    } catch (error) {
      if (isErrno(error, "ENOENT")) return undefined;
      throw error;
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

  /** Processes in a group; 0 for each of another pid namespace. */
  processesIn(directory: string): readonly number[] {
    const text = this.read(join(directory, "cgroup.procs")) ?? "";
    return text.split("\n").filter(Boolean).map(Number);
  }

  protected onHost(path: string): string {
    return join(this.#root, path);
  }
}

/** A peak of memory. */
export class MemoryPeak extends OpenFile {
  /**
   * Begins anew; in version 2 for this open file only. Throws the system's error where peaks never
   * do: in version 2 before Linux 6.12.
   */
  reset(): void {
    this.write("0");
  }
}

/** Whether an error is the system's, with one of these codes. */
export function isErrno(error: unknown, ...codes: readonly string[]): boolean {
  return codes.includes((error as NodeJS.ErrnoException).code ?? "");
}
