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
import type { BigIntStats } from "node:fs";
import { constants, link, lstat, open, readdir, rm } from "node:fs/promises";
import type { FileHandle } from "node:fs/promises";
import { join } from "node:path";
import { artifactTitle, errorCode, notSaved } from "../failures.ts";
import type { ArtifactKey } from "../scope.ts";
import { StoreError } from "../store.ts";
import type { ArtifactMetadata, OpenedArtifact } from "../store.ts";
import { decodeMeta, maxMetaBytes } from "./meta.ts";

/** The highest version number, an `int32` of any peer. */
export const highestVersion = 2 ** 31 - 1;

/** Largest number of versions that one save may lose to other processes. */
export const maxLostRaces = 1000;

/** Names of the finished files of a new version. */
interface StagedVersion {
  readonly contentPath: string;
  readonly metaPath: string;
}

/** An open version. */
type OpenedVersion = Omit<OpenedArtifact, "version">;

/** Versions with content and metadata, ascending; none without the directory. */
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

/** The first number above all existing files. May be beyond `highestVersion`. */
export async function nextVersion(directory: string): Promise<number> {
  let next = 0;
  for (const name of await readdir(directory)) {
    const digits = /^(\d+)(?:\.meta)?$/.exec(name)?.[1];
    if (digits !== undefined) next = Math.max(next, Number(digits) + 1);
  }
  return next;
}

/**
 * Links staged files as the first free version from `first` on. Undefined when a peer has taken it
 * over: stage the content again. Rejects with StoreError `too-many-versions`, with `unavailable`
 * after `maxLostRaces`, and with the system's error.
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

/** Inode and time of the last write of a regular file, or undefined. */
export async function etagOf(path: string): Promise<string | undefined> {
  try {
    const status = await lstat(path, { bigint: true });
    return status.isFile() ? etagFrom(status) : undefined;
  } catch (error) {
    if (absentCodes.has(errorCode(error))) return undefined;
    throw error;
  }
}

function etagFrom({ ino, mtimeNs }: BigIntStats): string {
  return `${ino}-${mtimeNs}`;
}

/** Removes a version with this `etag`; false when a peer has written into it. */
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

/** link(2): false when the name is taken, even by a dangling link. */
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
 * Opens a finished version, or returns undefined. The caller owns `body`. Rejects with StoreError
 * `unavailable` for damaged metadata.
 */
export async function openVersion(
  directory: string,
  version: number,
  key: ArtifactKey,
): Promise<OpenedVersion | undefined> {
  const path = join(directory, String(version));
  const [meta, opened] = await Promise.allSettled([
    readMeta(`${path}.meta`, `${artifactTitle(key, version)} is damaged.`),
    openFile(path),
  ]);
  const content = opened.status === "fulfilled" ? opened.value : undefined;
  if (meta.status === "fulfilled" && meta.value !== undefined && content !== undefined) {
    const { file, ...facts } = content;
    return { metadata: meta.value, ...facts, body: file.createReadStream(), file };
  }
  await content?.file.close();
  if (meta.status === "rejected") throw meta.reason;
  if (meta.value !== undefined && opened.status === "rejected") throw opened.reason;
  return undefined;
}

/** An empty file: a peer of the original is about to write it. */
async function readMeta(path: string, damaged: string): Promise<ArtifactMetadata | undefined> {
  const opened = await openFile(path);
  if (opened === undefined) return undefined;
  await using file = opened.file;
  if (opened.sizeBytes === 0) return undefined;
  if (opened.sizeBytes > maxMetaBytes) throw new StoreError("unavailable", damaged);
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(opened.sizeBytes));
    return decodeMeta(buffer.subarray(0, bytesRead));
  } catch (error) {
    throw new StoreError("unavailable", damaged, { cause: error });
  }
}

/** Errors of open(2) for an absent file, a link, a socket, and a parent that is no directory. */
const absentCodes: ReadonlySet<string | undefined> = new Set([
  "ENOENT",
  "ELOOP",
  "ENXIO",
  "ENOTDIR",
]);

/** Opens regular files only, without following links or blocking on a named pipe. */
async function openFile(
  path: string,
): Promise<{ file: FileHandle; sizeBytes: number; etag: string } | undefined> {
  let file: FileHandle;
  try {
    file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch (error) {
    if (absentCodes.has(errorCode(error))) return undefined;
    throw error;
  }
  try {
    const status = await file.stat({ bigint: true });
    if (status.isFile()) return { file, sizeBytes: Number(status.size), etag: etagFrom(status) };
  } catch (error) {
    await file.close();
    throw error;
  }
  await file.close();
  return undefined;
}
