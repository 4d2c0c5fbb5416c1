/**
 * What processes of a sandbox map that has no name: deleted files and shared memory. Either stays
 * as a whole while one page of it is mapped.
 */
import { linesOfProc } from "../proc/files.ts";
import { deviceName } from "../proc/files.ts";
import type { OwnMounts } from "./own-mounts.ts";

/** Files and pieces of shared memory that are recorded: a bound of the worker's own memory. */
const maxRecorded = 100_000;

/** Bytes of kernel memory for a mapping: 27 MB for 65,000, measured on Linux 6.18. */
const bytesPerMapping = 416;

/** A piece of shared memory, and the end of its mapped part. */
interface SharedMapping {
  readonly inode: number;
  readonly endBytes: number;
}

/** Lines of proc_pid_maps(5) without a name: range, offset, device, inode, former name. */
const unnamedLines =
  /^([0-9a-f]+)-([0-9a-f]+) \S+ ([0-9a-f]+) ([0-9a-f]+:[0-9a-f]+) (\d+) +(.*) \(deleted\)$/gm;

/** The kernel's name for mmap(2) with MAP_SHARED and MAP_ANONYMOUS. */
const sharedMemoryName = "/dev/zero";

/** Shared memory in lines of proc_pid_maps(5). */
export function sharedMappings(lines: string): readonly SharedMapping[] {
  return unnamedMappings(lines).filter(({ name }) => name === sharedMemoryName);
}

function unnamedMappings(lines: string) {
  return [...lines.matchAll(unnamedLines)].map(
    ([, from = "", to = "", offset = "", device = "", inode, name = ""]) => {
      const endBytes = parseInt(offset, 16) + parseInt(to, 16) - parseInt(from, 16);
      return { device, inode: Number(inode), name, endBytes };
    },
  );
}

/** What all processes map without a name. A deleted file is as large as its mapped part. */
export class Mapped {
  /** Bytes of deleted files on the work directory's device, by inode. */
  readonly files = new Map<number, number>();
  /** Bytes of shared memory, by inode: as large as it was ever mapped, touched or not. */
  readonly shared = new Map<number, number>();
  sharedBytes = 0;
  /** Whether a process maps a file on another sandbox's tmpfs. */
  isForeign = false;
  #mappings = 0;

  /** Bytes of the kernel's records of all mappings. */
  get kernelBytes(): number {
    return this.#mappings * bytesPerMapping;
  }

  /**
   * Adds the mappings of a process, and pauses after each page of the list.
   *
   * @param device of the work directory, as stat(2) numbers it
   * @param mounts undefined where foreign mappings cannot be identified
   */
  *add(
    place: string,
    device: number,
    before: Mapped,
    mounts: OwnMounts | undefined,
  ): Generator<undefined, void> {
    const workDevice = deviceName(device);
    for (const lines of linesOfProc(`${place}/maps`)) {
      this.#mappings += lines.split("\n").length - 1;
      for (const { device, inode, name, endBytes } of unnamedMappings(lines))
        if (device === workDevice) this.#record(this.files, inode, endBytes);
        else if (name === sharedMemoryName) {
          // Inodes of files are reused, those of shared memory are not.
          const bytes = Math.max(endBytes, before.shared.get(inode) ?? 0);
          this.sharedBytes += this.#record(this.shared, inode, bytes);
        }
      this.isForeign ||= mounts?.mapsForeign(place, lines) === true;
      yield;
    }
  }

  /** Returns the bytes by which the record grew. */
  #record(sizes: Map<number, number>, inode: number, bytes: number): number {
    const known = sizes.get(inode);
    if (known === undefined && sizes.size >= maxRecorded) return 0;
    sizes.set(inode, Math.max(bytes, known ?? 0));
    return Math.max(0, bytes - (known ?? 0));
  }
}
