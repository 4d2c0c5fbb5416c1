/**
 * One call's work directory: filled before the tool runs, read afterwards without following
 * anything the tool made.
 *
 * Layout (design document §3): `input/`, `output/`, `runner_args.json`, `status.pipe`, and
 * `result.json` when the tool side wrote one. Everything is opened relative to descriptors that
 * were taken before the tool ran.
 */
import { constants, lstatSync } from "node:fs";
import { type FileHandle, open, opendir } from "node:fs/promises";
import { type Amount, blockBytes } from "../accounting/disk-usage.ts";
import { type StatusChannel, StatusPipe } from "./status-channel.ts";

/** Names inside a work directory. */
export const workDirNames = {
  input: "input",
  output: "output",
  args: "runner_args.json",
  result: "result.json",
  status: "status.pipe",
} as const;

/** Never follow a link, never wait for a writer of a FIFO that stands where a file should. */
const readUntrusted = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
const openDirectory = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW;
const createNew = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;

/** The least that a file takes which is not empty. */
const pageBytes = 4096;

/**
 * Failures to open that say nothing about the file: reporting it as absent would lose a tool's work
 * silently.
 */
const shortages: ReadonlySet<string | undefined> = new Set(["EMFILE", "ENFILE", "ENOMEM", "EIO"]);

/**
 * Entries of `output/` that are not files before the rest is not looked at: a tool may make
 * millions.
 */
const maxSkipped = 1_000;

/** Entries on two levels of `output/` that are looked at, for the same reason. */
const maxNested = 10_000;

/** A file that a tool left, opened safely. The receiver owns `handle` and closes it. */
export interface LeftFile {
  readonly name: string;
  readonly handle: FileHandle;
  readonly sizeBytes: number;
}

/** What stands in `output/`. The receiver owns the handles. */
export interface LeftOutputs {
  readonly files: readonly LeftFile[];
  /**
   * Names of entries that are no regular files with one link under a name that is text, at most
   * `maxSkipped` of them.
   */
  readonly skipped: readonly string[];
}

/**
 * A work directory on the host. Its owner disposes it; that closes descriptors and hands the tree
 * to removal.
 */
export interface WorkDir extends AsyncDisposable {
  /** The directory on the host. */
  readonly path: string;
  /**
   * Starts to read `status.pipe`, which is open since before the tool ran. May be called once; the
   * caller owns the channel.
   */
  readStatuses(onStatus: (text: string) => void): StatusChannel;
  /** Fills `runner_args.json`. May be called once. */
  writeArguments(text: string): Promise<void>;
  /** Creates a file in `input/`. The caller closes the handle. */
  create(name: string): Promise<FileHandle>;
  /**
   * What the files take that were made by `create` and `writeArguments`; whatever else is there
   * does not count.
   */
  staged(): Amount;
  /** Opens a regular file with one link in the top directory; undefined when there is none such. */
  openLeft(name: string): Promise<LeftFile | undefined>;
  /**
   * Opens the regular files with one link directly in `output/`, the first `maxFiles` that are met,
   * by name.
   */
  leftOutputs(maxFiles: number): Promise<LeftOutputs>;
  /**
   * Opens the regular files with one link in the directories directly in `output/`, one after the
   * other.
   */
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
 * Opens the descriptors of a directory that no tool has touched yet, and makes `runner_args.json`
 * in it.
 *
 * @param ownerId host uid and gid that it shall belong to, or undefined for the worker's own
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
  // Of all that is opened, nothing is left behind when something cannot be.
  await Promise.allSettled(opening);
  const [top, input, output, args] = await Promise.all(opening);
  if (ownerId !== undefined) await args.chown(ownerId, ownerId);
  const status = await StatusPipe.open(`${path}/${workDirNames.status}`);
  opened.move();
  return { top, input, output, args, status };
}

/**
 * A work directory over open descriptors. `remove` gets the path when the directory is disposed,
 * and a promise for that its descriptors are closed: an answer does not wait for it.
 */
export class OpenWorkDir implements WorkDir {
  readonly path: string;
  readonly #handles: WorkDirHandles;
  readonly #ownerId: number | undefined;
  readonly #remove: (path: string, closed: Promise<unknown>) => void;
  readonly #created: string[] = [];
  #argsBytes = 0;
  #isRead = false;

  /**
   * @param ownerId host uid and gid that created files shall belong to, or undefined for the
   *   worker's own.
   */
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

  async create(name: string): Promise<FileHandle> {
    const handle = await open(below(this.#handles.input, name), createNew, 0o600);
    this.#created.push(name);
    if (this.#ownerId !== undefined) await handle.chown(this.#ownerId, this.#ownerId);
    return handle;
  }

  staged(): Amount {
    const sizes = this.#created.map((name) => bytesOf(below(this.#handles.input, name)));
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
    opened.move();
    return { files: files.toSorted((a, b) => (a.name < b.name ? -1 : 1)), skipped };
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

/**
 * A path that the kernel resolves from a descriptor: nothing on the way can be exchanged. See
 * proc_pid_fd(5).
 */
function below(directory: FileHandle, name: string): string {
  return `/proc/self/fd/${directory.fd}/${name}`;
}

/**
 * What a file takes on the disk, or 0 when it is gone: the tool's module may have had its hands on
 * it.
 */
function bytesOf(path: string): number {
  return (lstatSync(path, { throwIfNoEntry: false })?.blocks ?? 0) * blockBytes;
}

/** What so many bytes take on the disk, whatever the file system. */
function onDisk(bytes: number): number {
  return Math.ceil(bytes / pageBytes) * pageBytes;
}

/**
 * Bytes of a name that are no UTF-8 all become one character, so that they would be the name of
 * another file.
 */
function isText(name: string): boolean {
  return !name.includes("\ufffd");
}

/**
 * Opens `name` if it is a regular file with one link: a second link may be somebody else's file.
 */
async function openRegular(directory: FileHandle, name: string): Promise<LeftFile | undefined> {
  let handle: FileHandle;
  try {
    handle = await open(below(directory, name), readUntrusted);
  } catch (error) {
    if (shortages.has((error as NodeJS.ErrnoException).code)) throw error;
    // Absent, a link, a socket, or made unreadable: in every case there is no file to take.
    return undefined;
  }
  const stats = await handle.stat();
  if (stats.isFile() && stats.nlink === 1) return { name, handle, sizeBytes: stats.size };
  await handle.close();
  return undefined;
}
