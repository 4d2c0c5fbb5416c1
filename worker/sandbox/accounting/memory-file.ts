/**
 * Memory that a kernel which is a program keeps for a sandbox: one file without a name
 * (memfd_create(2)), whose pages no process need have mapped. What processes hold tells nothing of
 * them: 0.5 GiB of a tool showed as 8 MiB of gVisor's.
 */
import { readdirSync, readlinkSync, statSync } from "node:fs";
import { ProcessTree } from "./process-tree.ts";
import { blockBytes } from "./disk-usage.ts";
import type { TmpfsAmount } from "./tmpfs-usage.ts";

/** Reads without a file, ten seconds or more, after which it is hidden and not only late. */
const maxMisses = 500;

/** Reads the size of the file of one sandbox. */
export class MemoryFile {
  readonly #tree: ProcessTree;
  readonly #link: string;
  #path: string | undefined;
  #wasFound = false;
  #misses = 0;

  /** @param name as memfd_create(2) was given it by a descendant of `firstPid` */
  constructor(firstPid: number, name: string) {
    this.#tree = new ProcessTree(firstPid);
    this.#link = `/memfd:${name} `;
  }

  /** Undefined before there is one, and after its end. Throws where it never shows. */
  read(): TmpfsAmount | undefined {
    this.#path ??= this.#find();
    if (this.#path === undefined) {
      if (!this.#wasFound && ++this.#misses > maxMisses)
        throw new Error("the memory of a sandbox does not show");
      return undefined;
    }
    this.#wasFound = true;
    try {
      return { bytes: statSync(this.#path).blocks * blockBytes, files: 0 };
    } catch {
      this.#path = undefined;
      return undefined;
    }
  }

  #find(): string | undefined {
    for (const { place } of this.#tree.sample(false)) {
      const found = pathsOf(place).find((path) => linkOf(path).startsWith(this.#link));
      if (found !== undefined) return found;
    }
    return undefined;
  }
}

/** What a process has open; nothing of one that is gone, or hides it while it starts. */
function pathsOf(place: string): readonly string[] {
  try {
    return readdirSync(`${place}/fd`).map((name) => `${place}/fd/${name}`);
  } catch {
    return [];
  }
}

function linkOf(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    return "";
  }
}
