/**
 * Which file systems are a sandbox's own. What a process of it holds of others was given to it by
 * another call, over a socket of a network that both have: it stays with who holds it, and no
 * account of the other call's is left that it could be on.
 */
import { closeSync, openSync, statSync } from "node:fs";
import { O_PATH } from "../../support/open-flags.ts";
import { readProc, readProcRecord, throwIfExhausted } from "../proc/files.ts";
import { deviceName } from "../proc/device-name.ts";

/** Lines of proc_pid_mountinfo(5): number of the mount, and device. */
const mountLines = /^(\d+) \d+ (\d+):(\d+) /gm;

/** Lines of proc_pid_maps(5) of files on devices that are no disks: device, inode, path. */
const mappedLines = /^\S+ \S+ \S+ (00:(?!00 )[0-9a-f]+) (\d+) +(\/.*)$/gm;

/**
 * Devices of the kernel's own, made before any other: what is mapped to be shared is a file without
 * a name on one.
 */
const kernelsDevice = /^00:0[0-7]$/;

/**
 * The mounts of one sandbox that has been set up. They do not change any more, but for what the
 * first look was too early for.
 */
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

  /**
   * Whether a descriptor of a process came by another sandbox's mounts; undefined when it is gone.
   */
  isForeign(place: string, descriptor: string): boolean {
    return !this.#hasMount(mountIn(readProcRecord(`${place}/fdinfo/${descriptor}`)));
  }

  /** The same of one of the links that a process has besides, such as its current directory. */
  isForeignLink(path: string): boolean {
    let descriptor: number;
    try {
      descriptor = openSync(path, O_PATH);
    } catch (error) {
      throwIfExhausted(error);
      return false;
    }
    try {
      return this.isForeign("/proc/self", String(descriptor));
    } finally {
      closeSync(descriptor);
    }
  }

  hasDevice(device: number): boolean {
    return this.#has(() => this.#devices, deviceName(device));
  }

  /** Whether some of these lines of a list of mappings show a file in another sandbox's memory. */
  mapsForeign(place: string, lines: string): boolean {
    return [...lines.matchAll(mappedLines)].some(
      ([, device = "", inode, path = ""]) =>
        !kernelsDevice.test(device) &&
        !this.#has(() => this.#devices, device) &&
        !this.#isReadOnly(`${place}/root${path}`, Number(inode)),
    );
  }

  /**
   * Whether a file is there, and nowhere the tool could have put it: overlayfs shows mappings of
   * its files on the device below it, before Linux 6.8.
   */
  #isReadOnly(path: string, inode: number): boolean {
    try {
      const { ino, dev } = statSync(path);
      return ino === inode && !this.#writable().includes(dev);
    } catch (error) {
      throwIfExhausted(error);
      return false;
    }
  }

  #hasMount(id: string | undefined): boolean {
    return id === undefined || this.#has(() => this.#ids, id);
  }

  /** Looks once more before it says no. Where there is no list nobody can tell. */
  #has(known: () => ReadonlySet<string>, name: string): boolean {
    if (known().has(name)) return true;
    this.#read();
    return known().size === 0 || known().has(name);
  }

  #read(): void {
    const lines = [...readProc(this.#list).matchAll(mountLines)];
    this.#ids = new Set(lines.map(([, id = ""]) => id));
    this.#devices = new Set(
      lines.map(([, , major, minor]) =>
        [major, minor].map((part) => Number(part).toString(16).padStart(2, "0")).join(":"),
      ),
    );
  }
}

/** What proc_pid_fdinfo(5) says of a descriptor; undefined when it is gone. */
function mountIn(fdinfo: string): string | undefined {
  return /^mnt_id:\s+(\d+)$/m.exec(fdinfo)?.[1];
}
