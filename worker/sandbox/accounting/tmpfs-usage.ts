/**
 * Usage of a sandbox's own tmpfs, such as /tmp.
 */
import { statSync, statfsSync } from "node:fs";

/** Where a sandbox has tmpfs, and how to see that it is set up. */
export interface TmpfsPlace {
  /** Mount points inside. A tool cannot replace them. */
  readonly directories: readonly string[];
  /** The work directory inside and on the host: until both are one, the sandbox is not set up. */
  readonly workDirInside: string;
  readonly workDir: string;
}

/** Bytes and files on all tmpfs of a sandbox. */
export interface TmpfsAmount {
  readonly bytes: number;
  readonly files: number;
}

/** Reads the usage of one sandbox. */
export class TmpfsUsage {
  readonly #root: string;
  readonly #place: TmpfsPlace;
  #devices: readonly number[] = [];

  /** @param firstPid a process that has the sandbox's root directory, or will have */
  constructor(firstPid: number, place: TmpfsPlace) {
    this.#root = `/proc/${firstPid}/root`;
    this.#place = place;
  }

  /** Device numbers, as of stat(2); empty before the first usage was read. */
  get devices(): readonly number[] {
    return this.#devices;
  }

  /** Undefined before the sandbox is set up, after its end, and where the kernel hides it. */
  read(): TmpfsAmount | undefined {
    try {
      if (this.#devices.length === 0 && !this.#isSetUp()) return undefined;
      const usage = { bytes: 0, files: 0 };
      for (const directory of this.#place.directories) {
        const { blocks, bfree, bsize, files, ffree } = statfsSync(this.#root + directory);
        usage.bytes += (blocks - bfree) * bsize;
        // The top directory is one of them.
        usage.files += Math.max(0, files - ffree - 1);
      }
      return usage;
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
