/**
 * Examines the permissions of a store that the worker shares with agents of other users.
 */
import type { Stats } from "node:fs";
import { access, constants, lstat, opendir } from "node:fs/promises";
import { join, relative } from "node:path";
import { marksLevel } from "../scope.ts";
import type { StoreAccess } from "../store.ts";
import type { Base } from "./directories.ts";

/** Examined directories of a store, nearest to the base first. */
const maxExamined = 10_000;

/** Levels below the base for saves: scope, user, session, name. */
const savingLevels = 4;

/** User and groups of a process. */
interface Identity {
  readonly uid: number;
  readonly gids: ReadonlySet<number>;
}

interface Directory {
  readonly path: string;
  readonly status: Stats;
}

function ownIdentity(): Identity {
  const gids = [process.getegid?.() ?? 0, ...(process.getgroups?.() ?? [])];
  return { uid: process.geteuid?.() ?? 0, gids: new Set(gids) };
}

/** Compares owners and modes in the store with this process. Rejects with the system's error. */
export async function examineAccess(base: Base, signal: AbortSignal): Promise<StoreAccess> {
  const worker = ownIdentity();
  const directories = await directoriesOf(base, signal);
  const problems = [
    ...(await closedToWorker(base, directories, worker)),
    ...closedToOthers(base, directories, worker),
    ...lostGroup(base, worker),
  ];
  return {
    worker: { uid: worker.uid, gids: [...worker.gids] },
    base: factsOf(base.status),
    newDirectoriesFor: base.isShared ? "the base directory's group" : "the worker's user",
    examinedDirectories: directories.length,
    problems,
  };
}

/** The base and its descendants, level by level, without links. */
async function directoriesOf(base: Base, signal: AbortSignal): Promise<readonly Directory[]> {
  const found: Directory[] = [{ path: base.path, status: base.status }];
  let level: readonly Directory[] = found;
  for (let depth = 0; depth < savingLevels; depth++) {
    level = await childrenOf(level, maxExamined - found.length, signal);
    found.push(...level);
  }
  return found;
}

async function childrenOf(
  parents: readonly Directory[],
  max: number,
  signal: AbortSignal,
): Promise<readonly Directory[]> {
  const found: Directory[] = [];
  for (const { path } of parents) {
    signal.throwIfAborted();
    // A directory that the worker cannot list is reported as closed.
    for await (const entry of await opendir(path).catch(() => [])) {
      if (found.length >= max) return found;
      if (!entry.isDirectory() || entry.name === marksLevel) continue;
      const child = join(path, entry.name);
      const status = await lstat(child).catch(() => undefined);
      if (status !== undefined) found.push({ path: child, status });
    }
  }
  return found;
}

async function closedToWorker(
  base: Base,
  directories: readonly Directory[],
  { uid }: Identity,
): Promise<readonly string[]> {
  const closed: Directory[] = [];
  for (const directory of directories) {
    // The system knows of access control lists and of root's rights, which owner and mode do not
    // tell.
    const isOpen = await access(directory.path, constants.W_OK | constants.X_OK).then(
      () => true,
      () => false,
    );
    if (!isOpen) closed.push(directory);
  }
  if (closed.length === 0) return [];
  return [
    `The worker (uid ${uid}) cannot write to ${listed(base, closed)}: outputs there end in ARTIFACT_ERROR`,
  ];
}

/** Other users are owners in the store. Their groups are unknown; the base's counts as theirs. */
function closedToOthers(
  base: Base,
  directories: readonly Directory[],
  { uid }: Identity,
): readonly string[] {
  const own = directories.filter(({ status }) => status.uid === uid);
  const others = Map.groupBy(directories, ({ status }) => status.uid);
  others.delete(uid);
  others.delete(0);
  return [...others].flatMap(([other, theirs]) => {
    const gids = new Set([base.status.gid, ...theirs.map(({ status }) => status.gid)]);
    const closed = own.filter(({ status }) => !mayWrite(status, { uid: other, gids }));
    if (closed.length === 0) return [];
    return [
      `uid ${other}, which owns directories here, cannot write to ${listed(base, closed)} of the worker (uid ${uid}): what it saves there fails`,
    ];
  });
}

/** Only members of a directory's group can set its setgid bit. */
function lostGroup(base: Base, { uid, gids }: Identity): readonly string[] {
  const { gid, mode } = base.status;
  if (!base.isShared || uid === 0 || gids.has(gid) || (mode & 0o002) !== 0) return [];
  return [
    `The worker (uid ${uid}) is no member of group ${gid} of the base directory: members of that group cannot save below directories that the worker makes`,
  ];
}

function mayWrite({ uid, gid, mode }: Stats, who: Identity): boolean {
  const shift = who.uid === uid ? 6 : who.gids.has(gid) ? 3 : 0;
  return ((mode >> shift) & 0o3) === 0o3;
}

function listed(base: Base, directories: readonly Directory[]): string {
  const [first] = directories;
  if (first === undefined) return "no directory";
  const { uid, gid, mode } = factsOf(first.status);
  const name = relative(base.path, first.path) || "the base itself";
  return `${directories.length} ${directories.length === 1 ? "directory" : "directories"}, such as ${JSON.stringify(name)} (uid ${uid}, gid ${gid}, mode ${mode})`;
}

function factsOf({ uid, gid, mode }: Stats) {
  return { uid, gid, mode: (mode & 0o7777).toString(8).padStart(4, "0") };
}
