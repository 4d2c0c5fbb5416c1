/**
 * Unpacks the ZIP file of a toolset. Nothing in it is trusted: no name, no size, no kind of entry.
 */
import { constants } from "node:fs";
import { open, stat } from "node:fs/promises";
import { dirname } from "node:path";
import { type Entry, type ZipFile, fromBufferPromise } from "yauzl";
import { readUntrusted } from "../../support/files/below.ts";
import { CopyError, requireOwnFile, ToolsetBudget, ToolsetError, toolsetLimits } from "./budget.ts";
import type { SnapshotWriter } from "./snapshot-writer.ts";

const MiB = 1024 * 1024;
/** The upper half of `externalFileAttributes`, if the archive was made on Unix: `st_mode`. */
const modeShift = 16;
const unix = 3;

/**
 * Unpacks an archive. Throws ToolsetError for one that is no ZIP file, has too much, or has a
 * link, an encrypted file, or a path that leads out of it; CopyError, the system's error for the
 * archive, the signal's reason.
 */
export async function unpackArchive(
  path: string,
  writer: SnapshotWriter,
  signal: AbortSignal,
): Promise<void> {
  const bytes = await readArchive(path);
  try {
    const archive = await fromBufferPromise(bytes, { strictFileNames: true });
    if (archive.entryCount > toolsetLimits.entries)
      throw new ToolsetError(`has more than ${toolsetLimits.entries} files and directories`);
    // What the archive says, ahead of what is written: yauzl ends a file that has more.
    const declared = new ToolsetBudget();
    for await (const entry of archive.eachEntry()) {
      signal.throwIfAborted();
      declared.add(entry.uncompressedSize);
      await unpack(archive, entry, writer);
    }
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof ToolsetError || error instanceof CopyError || isOfSystem(error))
      throw error;
    // yauzl and zlib say what is wrong with the archive.
    throw new ToolsetError(`is no usable ZIP file: ${(error as Error).message}`, { cause: error });
  }
}

/** The whole archive, so that it stays as it is while it is unpacked. */
async function readArchive(path: string): Promise<Buffer> {
  await using file = await open(path, readUntrusted);
  const stats = await file.stat();
  if (!stats.isFile()) throw new ToolsetError("is no file");
  requireOwnFile(stats, (await stat(dirname(path))).uid, "is");
  const tooLarge = `is larger than ${toolsetLimits.archiveBytes / MiB} MiB`;
  if (stats.size > toolsetLimits.archiveBytes) throw new ToolsetError(tooLarge);
  const bytes = Buffer.alloc(stats.size);
  const { bytesRead } = await file.read(bytes, 0, stats.size, 0);
  return bytes.subarray(0, bytesRead);
}

async function unpack(archive: ZipFile, entry: Entry, writer: SnapshotWriter): Promise<void> {
  // yauzl refuses absolute names, backslashes and `..`.
  const isDirectory = entry.fileName.endsWith("/");
  const levels = entry.fileName.split("/").slice(0, isDirectory ? -1 : undefined);
  const path = levels.join("/");
  if (levels.some((level) => level === "" || level === "." || /\p{Cc}/u.test(level)))
    throw new ToolsetError(`has ${JSON.stringify(entry.fileName)}, which is no path`);
  if (levels.some((level) => level.startsWith("."))) return;
  const mode = entry.versionMadeBy >>> 8 === unix ? entry.externalFileAttributes >>> modeShift : 0;
  const kind = mode & constants.S_IFMT;
  if (kind === constants.S_IFLNK) throw new ToolsetError(`has ${path}, which is a link`);
  if (isDirectory) return writer.directory(path);
  if (kind !== 0 && kind !== constants.S_IFREG)
    throw new ToolsetError(`has ${path}, which is no file`);
  if (!entry.canDecodeFileData())
    throw new ToolsetError(`has ${path}, which is encrypted or packed in an unknown way`);
  const body = await archive.openReadStreamPromise(entry);
  try {
    await writer.file(path, (mode & 0o111) !== 0, body);
  } finally {
    body.destroy();
  }
}

function isOfSystem(error: unknown): boolean {
  return typeof (error as NodeJS.ErrnoException).syscall === "string";
}
