/**
 * `harness artifact put`: saves a file, or standard input, as a new version.
 */
import { constants } from "node:fs";
import { type FileHandle, mkdtemp, open, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { guessMimeType } from "../../worker/artifacts/mime.ts";
import { artifactKey, filenameOf } from "../../worker/artifacts/scope.ts";
import type { ArtifactSource, SavedArtifact } from "../../worker/artifacts/store.ts";
import { type Context, UsageError, exit } from "../context.ts";
import { printable } from "../invoke/screen.ts";
import { abortable } from "./abortable.ts";
import { companionOf, isCompanion, saveCompanion } from "./companion.ts";
import { type ArtifactOptions, openArtifacts, usable } from "./options.ts";
import { Progress } from "./progress.ts";

/** The command line. */
export interface PutOptions extends ArtifactOptions {
  /** Filename of the artifact; the file's own by default. */
  readonly name?: string;
  /** By the filename's extension by default. */
  readonly mimeType?: string;
  /** For agents, in the metadata. */
  readonly description?: string;
  /** Whether metadata are saved, as agents save them. */
  readonly metadata: boolean;
}

/** Bytes that are read at a time. */
const chunkBytes = 256 * 1024;

/** The file that stands for standard input. */
const standardInput = "-";

/** Saves it, and prints name and version. Rejects with UsageError or StoreError. */
export async function putArtifact(
  path: string,
  options: PutOptions,
  context: Context,
): Promise<number> {
  const { signal, out, clock } = context;
  const { description, metadata } = options;
  const isInput = path === standardInput;
  if (isInput && options.name === undefined) throw new UsageError("standard input needs --name");
  if (description !== undefined && !metadata)
    throw new UsageError("--description is part of the metadata, which --no-metadata leaves out");
  await using stack = new AsyncDisposableStack();
  const given = isInput ? undefined : stack.use(await openContent(path));
  const artifacts = stack.use(await openArtifacts(options, "write", context));
  const { store, scope } = artifacts;
  const filename = usable(() => filenameOf(artifactKey(scope, options.name ?? basename(path))));
  const hasCompanion = metadata && !isCompanion(filename);
  const companion = hasCompanion ? usable(() => companionOf(artifacts, filename)) : undefined;
  const content = given ?? stack.use(await spool(context));
  const mimeType = options.mimeType ?? guessMimeType(filename);
  const saved = await followed(content, context, (source) =>
    store.save(scope, filename, source, { mimeType }, signal),
  );
  const { version, sizeBytes } = saved;
  if (companion !== undefined) {
    const described = { filename, mimeType, description, saved, savedAtMs: clock.nowMs() };
    const paired = await saveCompanion(artifacts, companion, described, signal);
    if (paired !== version) warnOfGap(`${filename}@${version}`, `${companion}@${paired}`, context);
  }
  const facts = { filename, version, mime_type: mimeType, size_bytes: sizeBytes };
  out.line(printable(options.json ? JSON.stringify(facts) : `${filename}@${version}`));
  return exit.success;
}

function warnOfGap(content: string, companion: string, { err }: Context): void {
  const why = "agents look for its metadata in the version of the same number";
  err.line(printable(`warning: the metadata of ${content} are ${companion}: ${why}`));
}

/** An open regular file. */
interface Content extends AsyncDisposable {
  readonly file: FileHandle;
  readonly sizeBytes: number;
}

/** Opened once, so that what is measured is what is saved. Throws UsageError. */
async function openContent(path: string): Promise<Content> {
  // A pipe without a writer must not block.
  const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK).catch(
    (error: unknown) => {
      const { code } = error as NodeJS.ErrnoException;
      const why = code === "ENOENT" ? "does not exist" : `cannot be read: ${code}`;
      throw new UsageError(`${path} ${why}`, { cause: error });
    },
  );
  const stats = await file.stat();
  if (stats.isFile()) return contentOf(file, stats.size);
  await file.close();
  throw new UsageError(
    `${path} is not a regular file; - saves standard input, whatever that comes from`,
  );
}

/** Stores need the size before the first byte: what comes from a pipe waits on the disk. */
async function spool({ openInput, signal, err, clock }: Context): Promise<Content> {
  const directory = await mkdtemp(join(tmpdir(), "str-artifact-"));
  try {
    const file = await open(join(directory, "content"), "wx+", 0o600);
    // Without a name, nothing of it remains whatever happens.
    await rm(directory, { recursive: true });
    try {
      using progress = new Progress(err, clock);
      const chunks = progress.follow(abortable(openInput(), signal));
      await pipeline(chunks, (received) => file.writeFile(received), { signal });
      return contentOf(file, (await file.stat()).size);
    } catch (error) {
      await file.close();
      throw error;
    }
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

/** Saves content, and shows how far it has been read. */
async function followed(
  { file, sizeBytes }: Content,
  { err, clock }: Context,
  save: (source: ArtifactSource) => Promise<SavedArtifact>,
): Promise<SavedArtifact> {
  using progress = new Progress(err, clock);
  const open = (): Readable =>
    Readable.from(progress.follow(chunksOf(file), sizeBytes), { objectMode: false });
  return await save({ sizeBytes, open });
}

/** From the first byte on. A stream of the handle would keep it open. */
async function* chunksOf(file: FileHandle): AsyncGenerator<Uint8Array> {
  for (let position = 0; ;) {
    const buffer = Buffer.allocUnsafe(chunkBytes);
    const { bytesRead } = await file.read({ buffer, position });
    if (bytesRead === 0) return;
    yield buffer.subarray(0, bytesRead);
    position += bytesRead;
  }
}

function contentOf(file: FileHandle, sizeBytes: number): Content {
  return { file, sizeBytes, [Symbol.asyncDispose]: () => file.close() };
}
