/**
 * The work directory of one call: filled before the tool runs, read afterwards without following
 * a tool's links.
 *
 * Layout (design document §3): `input/`, `output/`, `runner_args.json`, `status.pipe`, and the
 * tool's `result.json`. Each open is relative to a descriptor from before the tool's start.
 */
import { fstatSync, opendirSync } from "node:fs";
import { type FileHandle, open, opendir } from "node:fs/promises";
import {
  below,
  createNew,
  isShortage,
  openDirectory,
  readUntrusted,
} from "../../support/files/below.ts";
import type { StatusListener } from "../../protocol/messages/status-details.ts";
import type { FileCopier } from "../../support/files/copy-file.ts";
import type { Amount } from "../accounting/disk-usage.ts";
import { type BoundInput, type InputContent, Inputs, onDisk } from "./inputs.ts";
import { type Nested, findNestedFile } from "./nested-file.ts";
import { type StatusChannel, StatusPipe } from "./status-channel.ts";

/** Names inside a work directory. */
export const workDirNames = {
  input: "input",
  output: "output",
  args: "runner_args.json",
  result: "result.json",
  status: "status.pipe",
} as const;

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
  /** Whether the reading ended at `maxSkipped`, so that files may be missing. */
  readonly isCut: boolean;
  /** Below `output/`. */
  readonly nested: Nested | undefined;
}

/** A work directory on the host. Disposing closes its descriptors and starts its removal. */
export interface WorkDir extends AsyncDisposable {
  /** The directory on the host. */
  readonly path: string;
  /** Starts reading `status.pipe`. Call once; the caller owns the channel. */
  readStatuses(onStatus: StatusListener): StatusChannel;
  /** Makes `runner_args.json`. Call it once, before anything runs in the directory. */
  writeArguments(text: string): Promise<void>;
  /**
   * Makes a new file in `input/`. Reads or destroys the content's body on every path, at the latest
   * when the work directory is disposed.
   */
  writeInput(name: string, content: InputContent, signal: AbortSignal): Promise<void>;
  /** Inputs that a sandbox has to mount when it starts, over empty files in `input/`. */
  readonly boundInputs: readonly BoundInput[];
  /**
   * Bytes on the disk, and number, of the files of `writeInput` and `writeArguments`: no more than
   * the worker has handed to them so far, because a tool that is idle may write to them, too. Of an
   * input that the kernel copies, all bytes count as handed over.
   */
  staged(): Amount;
  /** Whether anything is in `output/`; true also where it cannot be read. */
  hasOutputs(): boolean;
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
  /** `status.pipe`. */
  readonly status: StatusPipe;
  /** When the list of `output` last changed; undefined where a change could go unnoticed. */
  readonly outputChangedNs: bigint | undefined;
}

/** Opens the descriptors of a new directory. */
export async function openWorkDirHandles(path: string): Promise<WorkDirHandles> {
  await using opened = new AsyncDisposableStack();
  const take = async (name: string, flags: number): Promise<FileHandle> =>
    opened.use(await open(`${path}/${name}`, flags));
  const opening = [
    take("", openDirectory),
    take(workDirNames.input, openDirectory),
    take(workDirNames.output, openDirectory),
  ] as const;
  // After a failure the stack closes each opened handle.
  await Promise.allSettled(opening);
  const [top, input, output] = await Promise.all(opening);
  const { ctimeNs } = await output.stat({ bigint: true });
  const status = await StatusPipe.open(`${path}/${workDirNames.status}`);
  opened.move();
  return { top, input, output, status, outputChangedNs: distinctTime(ctimeNs, Date.now()) };
}

/**
 * Milliseconds within which two changes may have the same time: a tick of the kernel's clock, which
 * a busy virtual machine may miss several times.
 */
const clockLagMs = 250;

/**
 * A time of a directory that each change from now on replaces, in nanoseconds; undefined where one
 * may have the same: soon after, and on file systems that count whole seconds.
 *
 * @param nowMs epoch milliseconds
 */
export function distinctTime(ctimeNs: bigint, nowMs: number): bigint | undefined {
  const isPast = nowMs - Number(ctimeNs / 1_000_000n) > clockLagMs;
  return isPast && ctimeNs % 1_000_000_000n !== 0n ? ctimeNs : undefined;
}

/** How a work directory is opened. */
export interface WorkDirOptions {
  readonly path: string;
  /** Host uid and gid of created files, or undefined for the worker's own. */
  readonly ownerId: number | undefined;
  readonly copier: FileCopier;
  /** See `InputsOptions.bindsShared`. */
  readonly bindsShared: boolean;
  /** Called at the disposal, with a promise for the closed descriptors. It starts the removal. */
  readonly remove: (path: string, closed: Promise<unknown>) => void;
}

/** A work directory over open descriptors. */
export class OpenWorkDir implements WorkDir {
  readonly path: string;
  readonly #handles: WorkDirHandles;
  readonly #ownerId: number | undefined;
  readonly #remove: WorkDirOptions["remove"];
  readonly #inputs: Inputs;
  #argsBytes = 0;
  #isRead = false;

  constructor(handles: WorkDirHandles, options: WorkDirOptions) {
    this.path = options.path;
    this.#handles = handles;
    this.#ownerId = options.ownerId;
    this.#remove = options.remove;
    this.#inputs = new Inputs({ ...options, directory: handles.input });
  }

  readStatuses(onStatus: StatusListener): StatusChannel {
    if (this.#isRead) throw new Error("a status pipe is read once");
    this.#isRead = true;
    return this.#handles.status.read(onStatus);
  }

  async writeArguments(text: string): Promise<void> {
    this.#argsBytes = Buffer.byteLength(text);
    await using file = await open(below(this.#handles.top, workDirNames.args), createNew, 0o600);
    if (this.#ownerId !== undefined) await file.chown(this.#ownerId, this.#ownerId);
    await file.writeFile(text);
  }

  async writeInput(name: string, content: InputContent, signal: AbortSignal): Promise<void> {
    await this.#inputs.write(name, content, signal);
  }

  get boundInputs(): readonly BoundInput[] {
    return this.#inputs.bound;
  }

  staged(): Amount {
    const { bytes, files } = this.#inputs.staged();
    return { bytes: bytes + onDisk(this.#argsBytes), files };
  }

  hasOutputs(): boolean {
    try {
      if (this.#isUntouched()) return false;
      using directory = opendirSync(below(this.#handles.output, "."));
      return directory.readSync() !== null;
    } catch {
      return true;
    }
  }

  /** Each entry that comes or goes changes the time of its directory: inode(7). */
  #isUntouched(): boolean {
    const { output, outputChangedNs } = this.#handles;
    return fstatSync(output.fd, { bigint: true }).ctimeNs === outputChangedNs;
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
    const sorted = files.toSorted((a, b) => (a.name < b.name ? -1 : 1));
    return { files: sorted, skipped, isCut: skipped.length >= maxSkipped, nested };
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
    const { top, input, output, status } = this.#handles;
    status[Symbol.dispose]();
    this.#inputs[Symbol.dispose]();
    const closed = Promise.allSettled([top, input, output].map((handle) => handle.close()));
    this.#remove(this.path, closed);
  }
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
