/**
 * The files in `input/` of one call: streamed, copied, or left for the sandbox to
 * mount.
 */
import { lstatSync } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { dirname } from "node:path";
import type { Readable } from "node:stream";
import { below, createNew } from "../../support/files/below.ts";
import type { FileCopier } from "../../support/files/copy-file.ts";
import { writeContent } from "../../support/files/write-content.ts";
import { type Amount, blockBytes } from "../accounting/disk-usage.ts";
import { firstPrivateDirectory } from "../path-permissions.ts";

/** Mounted inputs of a call; bubblewrap takes a second for several hundred. */
const maxBound = 100;

/** Least bytes on the disk of a file that is not empty. */
const pageBytes = 4096;

/** Content of an input: a stream, and the regular file that it reads, if there is one. */
export interface InputContent {
  readonly body: Readable;
  /** For copies by the kernel. */
  readonly file?: FileHandle;
  /** A path of that file until `body` closes, which sandboxes may mount. */
  readonly sharedPath?: string;
  /** Exact bytes; content with more or fewer is an error. */
  readonly sizeBytes?: number;
}

/** An input that the sandbox mounts read-only over an empty file in `input/`. */
export interface BoundInput {
  readonly name: string;
  readonly source: string;
}

/** How inputs are made. */
export interface InputsOptions {
  readonly directory: FileHandle;
  /** Host uid and gid of the files, or undefined for the worker's own. */
  readonly ownerId: number | undefined;
  readonly copier: FileCopier;
  /** Whether the sandbox starts after its inputs are there, and mounts shared ones. */
  readonly bindsShared: boolean;
}

/** Disposing gives back what the sandbox mounts. */
export class Inputs implements Disposable {
  readonly #options: InputsOptions;
  /** Bytes that the worker hands to each file, by name. */
  readonly #handedBytes = new Map<string, () => number>();
  readonly #bound: BoundInput[] = [];
  readonly #boundBodies: Readable[] = [];

  constructor(options: InputsOptions) {
    this.#options = options;
  }

  /** For the sandbox to mount. Call it after the last `write`. */
  get bound(): readonly BoundInput[] {
    return this.#bound;
  }

  /** See `WorkDir.writeInput`. */
  async write(name: string, content: InputContent, signal: AbortSignal): Promise<void> {
    const { body, sizeBytes } = content;
    // Until it is read nothing else listens. Its reader meets the error again.
    body.on("error", () => undefined);
    try {
      await using file = await open(this.#pathOf(name), createNew, 0o600);
      const isBound = await this.#bind(name, content);
      const isCopied = !isBound && (await this.#copy(name, content, file, signal));
      const { ownerId } = this.#options;
      if (ownerId !== undefined) await file.chown(ownerId, ownerId);
      if (isBound) return;
      if (isCopied) return void body.destroy();
      let handedBytes = 0;
      this.#handedBytes.set(name, () => handedBytes);
      const onBytes = (count: number): void => void (handedBytes += count);
      await writeContent({ body, sizeBytes, onBytes }, file, signal);
    } catch (error) {
      body.destroy();
      throw error;
    }
  }

  /** See `WorkDir.staged`. */
  staged(): Amount {
    const sizes = [...this.#handedBytes].map(([name, handedBytes]) =>
      Math.min(bytesOf(this.#pathOf(name)), onDisk(handedBytes())),
    );
    return { bytes: sizes.reduce((sum, bytes) => sum + bytes, 0), files: sizes.length };
  }

  [Symbol.dispose](): void {
    for (const body of this.#boundBodies) body.destroy();
  }

  /** Whether the sandbox mounts it; then the body stays open until the disposal. */
  async #bind(name: string, { body, sharedPath }: InputContent): Promise<boolean> {
    const { bindsShared, ownerId } = this.#options;
    if (!bindsShared || sharedPath === undefined || this.#bound.length >= maxBound) return false;
    // bubblewrap binds as the sandboxes' user.
    if (ownerId !== undefined && (await firstPrivateDirectory(dirname(sharedPath))) !== undefined)
      return false;
    this.#bound.push({ name, source: sharedPath });
    this.#boundBodies.push(body);
    return true;
  }

  async #copy(
    name: string,
    { file: source, sizeBytes = 0 }: InputContent,
    target: FileHandle,
    signal: AbortSignal,
  ): Promise<boolean> {
    if (source === undefined) return false;
    // A copy reports no progress: all of it counts as handed over.
    this.#handedBytes.set(name, () => sizeBytes);
    return this.#options.copier.copy({ source, target, sizeBytes }, signal);
  }

  #pathOf(name: string): string {
    return below(this.#options.directory, name);
  }
}

/** Estimated bytes on the disk of a file of this size. */
export function onDisk(bytes: number): number {
  return Math.ceil(bytes / pageBytes) * pageBytes;
}

/** Bytes of a file on the disk; 0 when the tool's module has removed it. */
function bytesOf(path: string): number {
  return (lstatSync(path, { throwIfNoEntry: false })?.blocks ?? 0) * blockBytes;
}
