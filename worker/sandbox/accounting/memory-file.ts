/**
 * Memory that a kernel which is a program keeps for a sandbox: one file without a name
 * (memfd_create(2)), whose pages no process need have mapped. What processes hold tells nothing of
 * them: 0.5 GiB of a tool showed as 8 MiB of gVisor's.
 */
import { readdirSync, readlinkSync, statSync } from "node:fs";
import { ProcessTree } from "./process-tree.ts";
import { blockBytes } from "./disk-usage.ts";
import type { TmpfsAmount } from "./tmpfs-usage.ts";

/** Reads the size of the file of one sandbox. */
export class MemoryFile {
  readonly #tree: ProcessTree;
  readonly #link: string;
  #path: string | undefined;

  /** @param name as memfd_create(2) was given it by a descendant of `firstPid` */
  constructor(firstPid: number, name: string) {
    this.#tree = new ProcessTree(firstPid);
    this.#link = `/memfd:${name} `;
  }

  /** Undefined before there is one, and after its end. */
  read(): TmpfsAmount | undefined {
    try {
      this.#path ??= this.#find();
      if (this.#path === undefined) return undefined;
      return { bytes: statSync(this.#path).blocks * blockBytes, files: 0 };
    } catch {
      this.#path = undefined;
      return undefined;
    }
  }

  #find(): string | undefined {
    for (const { place } of this.#tree.sample(false)) {
      const paths = readdirSync(`${place}/fd`).map((name) => `${place}/fd/${name}`);
      const found = paths.find((path) => readlinkSync(path).startsWith(this.#link));
      if (found !== undefined) return found;
    }
    return undefined;
  }
}
