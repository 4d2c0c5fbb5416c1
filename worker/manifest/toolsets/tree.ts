/**
 * Walks the directory of a toolset, which others may change meanwhile: by descriptors, following
 * no link.
 */
import { createHash } from "node:crypto";
import type { Stats } from "node:fs";
import { type FileHandle, lstat, open, readdir } from "node:fs/promises";
import { below, openDirectory, readUntrusted } from "../../support/files/below.ts";
import { requireOwnFile, ToolsetBudget, ToolsetError } from "./budget.ts";
import type { SnapshotWriter } from "./snapshot-writer.ts";

/** An entry of a toolset. */
interface TreeEntry {
  /** Path in the toolset. */
  readonly path: string;
  readonly directory: FileHandle;
  readonly name: string;
  readonly stats: Stats;
}

/** What tells that a toolset changed, and where to watch for it. */
export interface TreeState {
  readonly fingerprint: string;
  /** Paths of its directories. */
  readonly directories: readonly string[];
}

/**
 * The state of a directory. Throws ToolsetError for one with a link, a special file, or too much;
 * the system's error.
 */
export async function treeState(path: string): Promise<TreeState> {
  const hash = createHash("sha256");
  const directories = [path];
  await using root = await open(path, openDirectory);
  for await (const entry of walk(root)) {
    const { mode, size, mtimeMs, ctimeMs, ino } = entry.stats;
    hash.update(`${entry.path}\0${mode}\0${size}\0${mtimeMs}\0${ctimeMs}\0${ino}\n`);
    if (entry.stats.isDirectory()) directories.push(`${path}/${entry.path}`);
  }
  return { fingerprint: hash.digest("hex"), directories };
}

/** Copies a directory. Throws as {@link treeState}; the signal's reason. */
export async function copyTree(
  path: string,
  writer: SnapshotWriter,
  signal: AbortSignal,
): Promise<void> {
  await using root = await open(path, openDirectory);
  const { uid: owner } = await root.stat();
  for await (const entry of walk(root)) {
    signal.throwIfAborted();
    if (entry.stats.isDirectory()) await writer.directory(entry.path);
    else await copyFile(entry, owner, writer, signal);
  }
}

async function copyFile(
  { path, directory, name }: TreeEntry,
  owner: number,
  writer: SnapshotWriter,
  signal: AbortSignal,
): Promise<void> {
  await using file = await open(below(directory, name), readUntrusted);
  const stats = await file.stat();
  if (!stats.isFile()) throw new ToolsetError(`has ${path}, which is no file`);
  requireOwnFile(stats, owner, `has ${path}, which is`);
  const body = file.createReadStream({ autoClose: false, signal });
  await writer.file(path, (stats.mode & 0o111) !== 0, body);
}

/** All entries by name, but those that begin with a dot. */
async function* walk(
  directory: FileHandle,
  prefix = "",
  budget = new ToolsetBudget(),
): AsyncGenerator<TreeEntry, void, undefined> {
  const names = await readdir(below(directory, "."));
  for (const name of names.filter((each) => !each.startsWith(".")).sort()) {
    const path = `${prefix}${name}`;
    budget.entry(path);
    if (name.includes("\ufffd")) throw new ToolsetError("has a name that is not UTF-8");
    const stats = await lstat(below(directory, name));
    if (stats.isSymbolicLink()) throw new ToolsetError(`has ${path}, which is a link`);
    if (!stats.isDirectory() && !stats.isFile())
      throw new ToolsetError(`has ${path}, which is no file`);
    if (stats.isFile()) budget.add(stats.size);
    yield { path, directory, name, stats };
    if (!stats.isDirectory()) continue;
    await using inner = await open(below(directory, name), openDirectory);
    yield* walk(inner, `${path}/`, budget);
  }
}
