/**
 * The work directory of one call: filled before the tool runs, read afterwards without following
 * a tool's links.
 *
 * Layout (design document §3): `input/`, `output/`, `runner_args.json`, `status.pipe`, and the
 * tool's `result.json`. Each open is relative to a descriptor from before the tool's start.
 */
import { type WriteStream, constants, lstatSync } from "node:fs";
import { type FileHandle, open, opendir } from "node:fs/promises";
import type { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { type Amount, blockBytes } from "../accounting/disk-usage.ts";
import { findNestedFile } from "./nested-file.ts";
import { type StatusChannel, StatusPipe } from "./status-channel.ts";
import { below, isShortage, openDirectory } from "./untrusted-paths.ts";

/** Names inside a work directory. */
export const workDirNames = {
  input: "input",
  output: "output",
  args: "runner_args.json",
  result: "result.json",
  status: "status.pipe",
} as const;

/** Follows no link, and does not wait for the writer of a FIFO. */
const readUntrusted = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
const createNew = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;

/** Least bytes on the disk of a file that is not empty. */
const pageBytes = 4096;

/** Skipped entries of `output/` that end its reading: a tool may create millions. */
const maxSkipped = 1_000;

/** Entries on two levels of `output/` that end its reading. */
const maxNested = 10_000;

/** A tool's file, opened safely. The receiver closes `handle`. */
export interface LeftFile {
  readonly name: string;
  readonly handle: FileHandle;
  readonly sizeBytes: number;
}

/** The files in `output/`. The receiver owns the handles. */
export interface LeftOutputs {
  readonly files: readonly LeftFile[];
  /** Names of at most `maxSkipped` other entries: no regular file, further links, or no UTF-8. */
  readonly skipped: readonly string[];
  /** Path below `output/` of a regular file in a sub-directory, if a bounded search finds one. */
  readonly nested: string | undefined;
}

/** Content of an input: a stream, and the regular file that it reads, if there is one. */
export interface InputContent {
  readonly body: Readable;
  readonly file?: FileHandle;
}

/** A work directory on the host. Disposing closes its descriptors and starts its removal. */
export interface WorkDir extends AsyncDisposable {
  /** The directory on the host. */
  readonly path: string;
  /** Starts reading `status.pipe`. Call once; the caller owns the channel. */
  readStatuses(onStatus: (text: string) => void): StatusChannel;
  /** Writes `runner_args.json`. Call once. */
  writeArguments(text: string): Promise<void>;
  /** Writes a new file in `input/`. Reads or destroys the content's body on every path. */
  writeInput(name: string, content: InputContent, signal: AbortSignal): Promise<void>;
  /**
   * Bytes on the disk, and number, of the files of `writeInput` and `writeArguments`: no more than
   * the worker has handed to them so far, because a tool that is idle may write to them, too.
   */
  staged(): Amount;
  /** Opens a regular file with one link in the top directory; undefined for anything else. */
  openLeft(name: string): Promise<LeftFile | undefined>;
  /** Opens at most `maxFiles` regular files with one link in `output/`, sorted by name. */
  leftOutputs(maxFiles: number): Promise<LeftOutputs>;
  /** Opens the regular files with one link one level below `output/`, in sequence. */
  leftNested(): AsyncIterable<LeftFile & { readonly directory: string }>;
}

/** The descriptors of one directory. */
export interface WorkDirHandles {
  readonly top: FileHandle;
  readonly input: FileHandle;
  readonly output: FileHandle;
  /** `runner_args.json`, empty. */
  readonly args: FileHandle;
  /** `status.pipe`. */
  readonly status: StatusPipe;
}

/**
 * Opens the descriptors of a new directory, and creates `runner_args.json` in it.
 *
 * @param ownerId host uid and gid of the file's owner, or undefined for the worker's own
 */
export async function openWorkDirHandles(
  path: string,
  ownerId: number | undefined,
): Promise<WorkDirHandles> {
  await using opened = new AsyncDisposableStack();
  const take = async (name: string, flags: number): Promise<FileHandle> =>
    opened.use(await open(`${path}/${name}`, flags, 0o600));
  const opening = [
    take("", openDirectory),
    take(workDirNames.input, openDirectory),
    take(workDirNames.output, openDirectory),
    take(workDirNames.args, createNew),
  ] as const;
  // After a failure the stack closes each opened handle.
  await Promise.allSettled(opening);
  const [top, input, output, args] = await Promise.all(opening);
  if (ownerId !== undefined) await args.chown(ownerId, ownerId);
  const status = await StatusPipe.open(`${path}/${workDirNames.status}`);
  opened.move();
  return { top, input, output, args, status };
}

/**
 * A work directory over open descriptors. Its disposal calls `remove` with the path and a promise
 * for the closed descriptors, and does not wait for either.
 */
export class OpenWorkDir implements WorkDir {
  readonly path: string;
  readonly #handles: WorkDirHandles;
  readonly #ownerId: number | undefined;
  readonly #remove: (path: string, closed: Promise<unknown>) => void;
  readonly #inputs = new Map<string, WriteStream>();
  #argsBytes = 0;
  #isRead = false;

  /** @param ownerId host uid and gid of created files, or undefined for the worker's own */
  constructor(
    path: string,
    handles: WorkDirHandles,
    ownerId: number | undefined,
    remove: (path: string, closed: Promise<unknown>) => void,
  ) {
    this.path = path;
    this.#handles = handles;
    this.#ownerId = ownerId;
    this.#remove = remove;
  }

  readStatuses(onStatus: (text: string) => void): StatusChannel {
    if (this.#isRead) throw new Error("a status pipe is read once");
    this.#isRead = true;
    return this.#handles.status.read(onStatus);
  }

  async writeArguments(text: string): Promise<void> {
    this.#argsBytes = Buffer.byteLength(text);
    await this.#handles.args.writeFile(text);
  }

  async writeInput(name: string, { body }: InputContent, signal: AbortSignal): Promise<void> {
    let file: WriteStream | undefined;
    try {
      const handle = await open(below(this.#handles.input, name), createNew, 0o600);
      // From here the stream closes the handle.
      file = handle.createWriteStream();
      this.#inputs.set(name, file);
      if (this.#ownerId !== undefined) await handle.chown(this.#ownerId, this.#ownerId);
      await pipeline(body, file, { signal });
    } catch (error) {
      file?.destroy();
      body.destroy();
      throw error;
    }
  }

  staged(): Amount {
    const sizes = [...this.#inputs].map(([name, { bytesWritten, writableLength }]) =>
      Math.min(bytesOf(below(this.#handles.input, name)), onDisk(bytesWritten + writableLength)),
    );
    const inputBytes = sizes.reduce((sum, bytes) => sum + bytes, 0);
    return { bytes: inputBytes + onDisk(this.#argsBytes), files: sizes.length };
  }

  async openLeft(name: string): Promise<LeftFile | undefined> {
    return openRegular(this.#handles.top, name);
  }

  async leftOutputs(maxFiles: number): Promise<LeftOutputs> {
    await using opened = new AsyncDisposableStack();
    const files: LeftFile[] = [];
    const skipped: string[] = [];
    for await (const { name } of await opendir(below(this.#handles.output, "."))) {
      const file = isText(name) ? await openRegular(this.#handles.output, name) : undefined;
      if (file === undefined) {
        if (skipped.push(name) >= maxSkipped) break;
        continue;
      }
      opened.use(file.handle);
      if (files.push(file) >= maxFiles) break;
    }
    const nested = await findNestedFile(this.#handles.output, skipped);
    opened.move();
    return { files: files.toSorted((a, b) => (a.name < b.name ? -1 : 1)), skipped, nested };
  }

  async *leftNested(): AsyncGenerator<LeftFile & { readonly directory: string }, void, undefined> {
    let entries = 0;
    for await (const { name: directory } of await opendir(below(this.#handles.output, "."))) {
      if (++entries > maxNested) return;
      await using handle = await open(below(this.#handles.output, directory), openDirectory).catch(
        () => undefined,
      );
      if (handle === undefined) continue;
      for await (const { name } of await opendir(below(handle, "."))) {
        if (++entries > maxNested) return;
        const file = await openRegular(handle, name);
        if (file !== undefined) yield { ...file, directory };
      }
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const { top, input, output, args, status } = this.#handles;
    status[Symbol.dispose]();
    const closed = Promise.allSettled([top, input, output, args].map((handle) => handle.close()));
    this.#remove(this.path, closed);
  }
}

/** Bytes of a file on the disk; 0 when the tool's module has removed it. */
function bytesOf(path: string): number {
  return (lstatSync(path, { throwIfNoEntry: false })?.blocks ?? 0) * blockBytes;
}

/** Estimated bytes on the disk of a file of this size. */
function onDisk(bytes: number): number {
  return Math.ceil(bytes / pageBytes) * pageBytes;
}

/** Whether a name is UTF-8: other bytes become U+FFFD, the name of another file. */
function isText(name: string): boolean {
  return !name.includes("\ufffd");
}

/** Opens a regular file with one link: a second link may be another user's file. */
async function openRegular(directory: FileHandle, name: string): Promise<LeftFile | undefined> {
  let handle: FileHandle;
  try {
    handle = await open(below(directory, name), readUntrusted);
  } catch (error) {
    if (isShortage(error)) throw error;
    // Absent, a link, a socket, or unreadable.
    return undefined;
  }
  const stats = await handle.stat();
  if (stats.isFile() && stats.nlink === 1) return { name, handle, sizeBytes: stats.size };
  await handle.close();
  return undefined;
}
