/**
 * Which file systems are a sandbox's own. A process can hold objects of others, received over a
 * socket of a common network; no other account has them once the other call has ended.
 */
import { closeSync, openSync, statSync } from "node:fs";
import { O_PATH } from "../../support/open-flags.ts";
import { deviceName, readProc, throwIfExhausted } from "../proc/files.ts";

/** Lines of proc_pid_mountinfo(5): number of the mount, and device. */
const mountLines = /^(\d+) \d+ (\d+):(\d+) /gm;

/** Lines of proc_pid_maps(5) of files on devices that are no disks: device, inode, path. */
const mappedLines = /^\S+ \S+ \S+ (00:(?!00 )[0-9a-f]+) (\d+) +(\/.*)$/gm;

/** Devices that the kernel makes for itself at boot, such as that of shared memory. */
const kernelsDevice = /^00:0[0-7]$/;

/** The mounts of one sandbox that is set up. */
export class OwnMounts {
  readonly #list: string;
  readonly #writable: () => readonly number[];
  #ids: ReadonlySet<string> = new Set();
  #devices: ReadonlySet<string> = new Set();

  /**
   * @param firstPid a process that has these mounts
   * @param writable devices on which the sandbox can make files, as stat(2) numbers them
   */
  constructor(firstPid: number, writable: () => readonly number[]) {
    this.#list = `/proc/${firstPid}/mountinfo`;
    this.#writable = writable;
  }

  /** Whether a device is mounted. */
  has(device: number): boolean {
    return this.#hasDevice(deviceName(device));
  }

  /**
   * Whether a link of /proc leads to a mount of another sandbox. Sandboxes share the disk, so only
   * the mount identifies its owner.
   */
  isForeign(link: string): boolean {
    let descriptor: number;
    try {
      descriptor = openSync(link, O_PATH);
    } catch (error) {
      throwIfExhausted(error);
      return false;
    }
    try {
      const info = readProc(`/proc/self/fdinfo/${descriptor}`);
      const id = /^mnt_id:\s+(\d+)$/m.exec(info)?.[1];
      return id !== undefined && !this.#knows(() => this.#ids, id);
    } finally {
      closeSync(descriptor);
    }
  }

  /** Whether lines of a process's list of mappings show a file on another sandbox's tmpfs. */
  mapsForeign(place: string, lines: string): boolean {
    return [...lines.matchAll(mappedLines)].some(
      ([, device = "", inode, path = ""]) =>
        !kernelsDevice.test(device) &&
        !this.#hasDevice(device) &&
        !this.#isReadOnly(`${place}/root${path}`, Number(inode)),
    );
  }

  /** Before Linux 6.8 mappings of files on overlayfs show the device below it. */
  #isReadOnly(path: string, inode: number): boolean {
    try {
      const { ino, dev } = statSync(path);
      return ino === inode && !this.#writable().includes(dev);
    } catch (error) {
      throwIfExhausted(error);
      return false;
    }
  }

  #hasDevice(name: string): boolean {
    return this.#knows(() => this.#devices, name);
  }

  /** Reads the list again before it denies. Without a list everything counts as known. */
  #knows(known: () => ReadonlySet<string>, name: string): boolean {
    if (known().has(name)) return true;
    const lines = [...readProc(this.#list).matchAll(mountLines)];
    this.#ids = new Set(lines.map(([, id = ""]) => id));
    this.#devices = new Set(lines.map(([, , major, minor]) => `${hex(major)}:${hex(minor)}`));
    return known().size === 0 || known().has(name);
  }
}

function hex(number: string | undefined): string {
  return Number(number).toString(16).padStart(2, "0");
}
