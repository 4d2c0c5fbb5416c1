/**
 * The versions in the directory of one artifact: content in `{N}`, metadata in `{N}.meta`, numbered
 * from 0.
 *
 * What makes it safe to share the directory with savers in other processes, and with ones of the
 * original, which takes no locks and creates its files in place:
 *
 * | moment                                   | on disk            | what a reader here sees                           |
 * |------------------------------------------|--------------------|---------------------------------------------------|
 * | content and metadata are being written   | two staged files   | nothing                                           |
 * | the number is claimed                    | `N`, complete      | nothing: a version has both files                 |
 * | the metadata is linked                   | `N`, `N.meta`      | the version                                       |
 * | died in between                          | `N` alone, forever | nothing; the next saver takes the number after it |
 *
 * Both files come by link(2), which never replaces anything. A number of which either file exists
 * is taken: a peer may be writing the other one. When the metadata's name is taken although the
 * number was free, a peer chose the same number and has written into our file; the version is then
 * the peer's, and the content has to be sent again.
 *
 * A version is deleted in the other order, metadata first, so that its number is free only when
 * nothing of it is left.
 *
 * What no saver can prevent: a peer of the original that chose its number before ours appeared, and
 * that opens its files after we have finished, overwrites the version, as it does among its own
 * kind.
 */
import { constants, link, lstat, open, readdir, rm } from "node:fs/promises";
import type { FileHandle } from "node:fs/promises";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { artifactTitle, errorCode, notSaved } from "../failures.ts";
import type { ArtifactKey } from "../scope.ts";
import { StoreError } from "../store.ts";
import type { ArtifactMetadata } from "../store.ts";
import { decodeMeta, maxMetaBytes } from "./meta.ts";

/** The highest version number: what an `int32` of any peer holds. */
export const highestVersion = 2 ** 31 - 1;

/**
 * Numbers that other savers may take from under one save. Each of them is a version that somebody
 * has saved.
 */
export const maxLostRaces = 1000;

/** Names of finished files by which a version is claimed. */
interface StagedVersion {
  readonly contentPath: string;
  readonly metaPath: string;
}

/** One version, opened. */
interface OpenedVersion {
  readonly sizeBytes: number;
  readonly metadata: ArtifactMetadata;
  readonly body: Readable;
}

/** The versions that have content and metadata, ascending; none when the directory is gone. */
export async function listVersions(directory: string): Promise<number[]> {
  const files = await regularFiles(directory);
  return [...files]
    .filter((name) => /^(0|[1-9]\d*)$/.test(name) && files.has(`${name}.meta`))
    .map(Number)
    .filter((version) => version <= highestVersion)
    .sort((a, b) => a - b);
}

async function regularFiles(directory: string): Promise<ReadonlySet<string>> {
  try {
    const entries = await readdir(directory, { withFileTypes: true });
    return new Set(entries.filter((entry) => entry.isFile()).map((entry) => entry.name));
  } catch (error) {
    if (errorCode(error) === "ENOENT") return new Set();
    throw error;
  }
}

/** The number after every one of which any file exists. May be beyond `highestVersion`. */
export async function nextVersion(directory: string): Promise<number> {
  let next = 0;
  for (const name of await readdir(directory)) {
    const digits = /^(\d+)(?:\.meta)?$/.exec(name)?.[1];
    if (digits !== undefined) next = Math.max(next, Number(digits) + 1);
  }
  return next;
}

/**
 * Makes staged files the first free version from `first` on. Returns its number, or undefined when
 * a peer took it over: the staged content may then be spoilt and has to be staged anew.
 *
 * Throws StoreError `too-many-versions` when the numbers are used up, `unavailable` after
 * `maxLostRaces`, and what the file system says: `ENOENT`, for example, when a peer has removed the
 * artifact.
 */
export async function claimVersion(
  directory: string,
  staged: StagedVersion,
  first: number,
  key: ArtifactKey,
): Promise<number | undefined> {
  for (let version = first; version <= first + maxLostRaces; version++) {
    if (version > highestVersion) {
      throw new StoreError("too-many-versions", `${artifactTitle(key)} has too many versions.`);
    }
    const path = join(directory, String(version));
    if (!(await linkNew(staged.contentPath, path))) continue;
    return (await completeVersion(path, staged.metaPath)) ? version : undefined;
  }
  throw notSaved(key, "too many others are saving it at the same time");
}

async function completeVersion(path: string, metaPath: string): Promise<boolean> {
  try {
    return await linkNew(metaPath, `${path}.meta`);
  } catch (error) {
    await rm(path, { force: true });
    throw error;
  }
}

/**
 * Inode and time of the last write of a regular file, or undefined when there is none by that name.
 */
export async function etagOf(path: string): Promise<string | undefined> {
  try {
    const status = await lstat(path, { bigint: true });
    return status.isFile() ? `${status.ino}-${status.mtimeNs}` : undefined;
  } catch (error) {
    if (absentCodes.has(errorCode(error))) return undefined;
    throw error;
  }
}

/**
 * Removes a version whose content has this `etag`, or returns false: a peer may have written into
 * it since.
 */
export async function removeVersion(
  directory: string,
  version: number,
  etag: string,
): Promise<boolean> {
  const path = join(directory, String(version));
  if ((await etagOf(path)) !== etag) return false;
  await rm(`${path}.meta`, { force: true });
  await rm(path, { force: true });
  return true;
}

/**
 * link(2): gives a file a second name, or returns false when something has that name, be it a
 * dangling link.
 */
async function linkNew(path: string, newPath: string): Promise<boolean> {
  try {
    await link(path, newPath);
    return true;
  } catch (error) {
    if (errorCode(error) === "EEXIST") return false;
    throw error;
  }
}

/**
 * Opens a version, or returns undefined when it is not there or not finished. The caller owns
 * `body`. Throws StoreError `unavailable` when its metadata is damaged.
 */
export async function openVersion(
  directory: string,
  version: number,
  key: ArtifactKey,
): Promise<OpenedVersion | undefined> {
  const path = join(directory, String(version));
  const metadata = await readMeta(`${path}.meta`, `${artifactTitle(key, version)} is damaged.`);
  if (metadata === undefined) return undefined;
  const content = await openFile(path);
  if (content === undefined) return undefined;
  return { metadata, sizeBytes: content.sizeBytes, body: content.file.createReadStream() };
}

/** An empty file is one that a peer of the original has created and is about to write. */
async function readMeta(path: string, damaged: string): Promise<ArtifactMetadata | undefined> {
  const opened = await openFile(path);
  if (opened === undefined) return undefined;
  await using file = opened.file;
  if (opened.sizeBytes === 0) return undefined;
  if (opened.sizeBytes > maxMetaBytes) throw new StoreError("unavailable", damaged);
  try {
    return decodeMeta(await file.readFile());
  } catch (error) {
    throw new StoreError("unavailable", damaged, { cause: error });
  }
}

/**
 * What open(2) says of a name that holds nothing, a link, a socket, or something that is not a
 * directory above it.
 */
const absentCodes: ReadonlySet<string | undefined> = new Set([
  "ENOENT",
  "ELOOP",
  "ENXIO",
  "ENOTDIR",
]);

/** Opens a regular file and nothing else: links are not followed, a named pipe does not block. */
async function openFile(
  path: string,
): Promise<{ file: FileHandle; sizeBytes: number } | undefined> {
  let file: FileHandle;
  try {
    file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch (error) {
    if (absentCodes.has(errorCode(error))) return undefined;
    throw error;
  }
  try {
    const status = await file.stat();
    if (status.isFile()) return { file, sizeBytes: status.size };
  } catch (error) {
    await file.close();
    throw error;
  }
  await file.close();
  return undefined;
}
