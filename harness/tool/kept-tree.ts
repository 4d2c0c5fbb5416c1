/**
 * Copies what a tool left in its work directory, which may be anything: nothing of it is followed,
 * opened for long, or trusted in size.
 */
import { type FileHandle, mkdir, open, opendir } from "node:fs/promises";
import {
  below,
  createNew,
  openDirectory,
  readUntrusted,
} from "../../worker/support/files/below.ts";

/** Bounds of a copy: what is beyond is left out. */
const maxDepth = 32;
const maxEntries = 10_000;
const maxBytes = 1024 * 1024 * 1024;

/** Bytes that are copied at a time. */
const chunkBytes = 256 * 1024;

/** What a copy has. */
export interface TreeCopy {
  /**
   * Paths of what was left out: links, pipes, sockets, devices, files with a second name, what is
   * beyond the bounds.
   */
  readonly leftOut: readonly string[];
}

/**
 * Copies the regular files below `from` into the empty directory `to`. All that is made belongs to
 * this process's user and is for that user alone. Nobody may change `to` meanwhile; whoever changes
 * `from` can spoil the copy and nothing else.
 */
export async function copyLeftTree(from: string, to: string): Promise<TreeCopy> {
  const copy = new Copy();
  await using source = await open(from, openDirectory);
  await using target = await open(to, openDirectory);
  await copy.directory(source, target, "", maxDepth);
  return copy;
}

class Copy implements TreeCopy {
  readonly leftOut: string[] = [];
  #entries = 0;
  #bytes = 0;

  /**
   * Every name is looked up from the descriptor of its directory, so that nothing on the way can be
   * exchanged.
   */
  async directory(from: FileHandle, to: FileHandle, path: string, depth: number): Promise<void> {
    for await (const { name } of await opendir(below(from, "."))) {
      if (this.#entries++ >= maxEntries) {
        this.leftOut.push(`${path}… (more than ${maxEntries} entries)`);
        return;
      }
      const isCopied = await this.#entry(from, to, name, `${path}${name}`, depth).catch(notThere);
      if (!isCopied) this.leftOut.push(`${path}${name}`);
    }
  }

  /** Whether the entry was copied: the kernel says by opening it what it is. */
  async #entry(
    from: FileHandle,
    to: FileHandle,
    name: string,
    path: string,
    depth: number,
  ): Promise<boolean> {
    await using source = await open(below(from, name), readUntrusted);
    const stats = await source.stat();
    if (stats.isDirectory()) {
      if (depth === 0) return false;
      await mkdir(below(to, name), { mode: 0o700 });
      await using target = await open(below(to, name), openDirectory);
      await this.directory(source, target, `${path}/`, depth - 1);
      return true;
    }
    if (!stats.isFile() || stats.nlink !== 1 || this.#bytes + stats.size > maxBytes) return false;
    this.#bytes += stats.size;
    await using target = await open(below(to, name), createNew, 0o600);
    await copyContent(source, target, stats.size);
    return true;
  }
}

/** Copies the first `sizeBytes`, or what there is of them. */
async function copyContent(from: FileHandle, to: FileHandle, sizeBytes: number): Promise<void> {
  const buffer = Buffer.alloc(Math.min(chunkBytes, sizeBytes));
  for (let copied = 0; copied < sizeBytes;) {
    const wanted = Math.min(buffer.byteLength, sizeBytes - copied);
    const { bytesRead } = await from.read(buffer, 0, wanted);
    if (bytesRead === 0) return;
    await to.writeFile(buffer.subarray(0, bytesRead));
    copied += bytesRead;
  }
}

/**
 * What cannot be opened: a link, a socket, an entry without permissions or with a name that is no
 * UTF-8.
 */
function notThere(error: unknown): false {
  const { code } = error as NodeJS.ErrnoException;
  if (["ELOOP", "ENXIO", "ENODEV", "EACCES", "EPERM", "ENOENT"].includes(code ?? "")) return false;
  throw error;
}
