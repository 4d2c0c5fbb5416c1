/**
 * `harness artifact get`: writes a version to a file or to standard output.
 */
import { mkdir, stat } from "node:fs/promises";
import { join } from "node:path";
import type { OpenedArtifact } from "../../worker/artifacts/store.ts";
import { artifactKey, filenameOf } from "../../worker/artifacts/scope.ts";
import type { ArtifactReference } from "../../worker/protocol/invocation.ts";
import { CommandError, type Context, UsageError, exit } from "../context.ts";
import { printable } from "../invoke/screen.ts";
import { abortable } from "./abortable.ts";
import { type ArtifactOptions, openArtifacts, usable } from "./options.ts";
import { Progress } from "./progress.ts";
import { writeWholeFile } from "./whole-file.ts";

/** The command line. */
export interface GetOptions extends ArtifactOptions {
  /** A file, a directory, or `-`; this directory by default. */
  readonly output: string;
  /** Whether an existing file is replaced. */
  readonly force?: boolean;
}

/** Writes it. Rejects with UsageError, CommandError or StoreError. */
export async function getArtifact(
  reference: ArtifactReference,
  options: GetOptions,
  context: Context,
): Promise<number> {
  const { signal, out, err, clock } = context;
  const isOutput = options.output === "-";
  if (isOutput && options.json) throw new UsageError("--json cannot go with --output -");
  await using artifacts = await openArtifacts(options, "read", context);
  const { store, scope } = artifacts;
  const filename = usable(() => filenameOf(artifactKey(scope, reference.filename)));
  const path = isOutput ? undefined : await targetPath(filename, options);
  const opened = await store.open(scope, reference, signal);
  try {
    using progress = new Progress(err, clock);
    const content = progress.follow(abortable(opened.body, signal), opened.sizeBytes);
    if (path === undefined) await out.copy(content, signal);
    else await writeTo(path, content, options, signal);
  } finally {
    opened.body.destroy();
  }
  if (path !== undefined) report(filename, opened, path, options, context);
  return exit.success;
}

/** The file to write. Throws CommandError when it exists and stays. */
async function targetPath(filename: string, { output, force }: GetOptions): Promise<string> {
  const isDirectory = output.endsWith("/") || (await isDirectoryAt(output));
  const path = isDirectory ? join(output, filename) : output;
  const existing = await stat(path).catch(() => undefined);
  if (existing !== undefined && !force) throw exists(path);
  return path;
}

async function isDirectoryAt(path: string): Promise<boolean> {
  return (await stat(path).catch(() => undefined))?.isDirectory() === true;
}

async function writeTo(
  path: string,
  content: AsyncIterable<Uint8Array>,
  { output, force = false }: GetOptions,
  signal: AbortSignal,
): Promise<void> {
  try {
    if (output.endsWith("/")) await mkdir(output, { recursive: true });
    await writeWholeFile(content, path, { replaces: force }, signal);
  } catch (error) {
    signal.throwIfAborted();
    const { code, syscall } = error as NodeJS.ErrnoException;
    if (syscall === undefined) throw error;
    if (code === "EEXIST") throw exists(path);
    throw new CommandError(`cannot write ${path}: ${code}`, { cause: error });
  }
}

function exists(path: string): CommandError {
  return new CommandError(`${path} exists; --force replaces it, --output names another file`);
}

function report(
  filename: string,
  { version, sizeBytes, metadata }: OpenedArtifact,
  path: string,
  { json }: GetOptions,
  { out, err }: Context,
): void {
  const { mimeType } = metadata;
  if (json) {
    const facts = { filename, version, mime_type: mimeType, size_bytes: sizeBytes, path };
    out.line(printable(JSON.stringify(facts)));
  } else {
    err.line(printable(`saved ${path}: version ${version}, ${mimeType}, ${sizeBytes} bytes`));
  }
}
