/**
 * What a tool has put into the memory file systems of its sandbox.
 */
import { statSync, statfsSync } from "node:fs";

/**
 * Where a sandbox has file systems of its own in memory, and how to tell that it has been set up.
 */
export interface PrivateMemory {
  /** Paths inside of the file systems, none of which a tool can exchange. */
  readonly directories: readonly string[];
  /**
   * Where the work directory is inside, and on the host: what is in between is not the sandbox yet.
   */
  readonly workDirInside: string;
  readonly workDir: string;
  /**
   * Whether the sandbox has devices of the host's, whose drivers map memory that is in no file
   * system of either.
   */
  readonly hasDevices: boolean;
}

/** What is in them. */
export interface PrivateMemoryUse {
  readonly bytes: number;
  readonly files: number;
}

/** Looks at the memory file systems of one sandbox. */
export class PrivateMemoryView {
  readonly #root: string;
  readonly #place: Omit<PrivateMemory, "hasDevices">;
  #devices: readonly number[] = [];

  /** @param firstPid a process that has the sandbox's root directory, or will have */
  constructor(firstPid: number, place: Omit<PrivateMemory, "hasDevices">) {
    this.#root = `/proc/${firstPid}/root`;
    this.#place = place;
  }

  /**
   * The devices of the file systems, as stat(2) numbers them; none before the first use was read.
   */
  get devices(): readonly number[] {
    return this.#devices;
  }

  /**
   * Undefined before the sandbox is set up, after it is gone, and where the kernel lets this
   * process not look inside.
   */
  read(): PrivateMemoryUse | undefined {
    try {
      if (this.#devices.length === 0 && !this.#isSetUp()) return undefined;
      const use = { bytes: 0, files: 0 };
      for (const directory of this.#place.directories) {
        const { blocks, bfree, bsize, files, ffree } = statfsSync(this.#root + directory);
        use.bytes += (blocks - bfree) * bsize;
        // One of them is the top directory.
        use.files += Math.max(0, files - ffree - 1);
      }
      return use;
    } catch {
      return undefined;
    }
  }

  /** Until then the same paths may lead to the host's directories. */
  #isSetUp(): boolean {
    const { directories, workDirInside, workDir } = this.#place;
    const [inside, outside] = [statSync(this.#root + workDirInside), statSync(workDir)];
    if (inside.ino !== outside.ino || inside.dev !== outside.dev) return false;
    this.#devices = directories.map((directory) => statSync(this.#root + directory).dev);
    return true;
  }
}
