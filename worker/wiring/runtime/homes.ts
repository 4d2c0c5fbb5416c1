/**
 * The directories of the library's backends: one for each, in one place for all processes of a
 * user, so that the next process finds what killed ones have left.
 */
import { chmod, lstat, mkdir, mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { endOrphans, ownerTag } from "../../sandbox/orphans.ts";
import { TreeRemover } from "../../sandbox/work/tree-remover.ts";
import { isInUse, openLivenessSocket } from "../../support/files/liveness.ts";

/** Name of the work directories in a home. */
export const workIn = "work";
/** Sandboxes of another user reach what is below. */
const openMode = 0o711;
/** The number of the process is for people: another one may have it by now. */
const homeName = /^\d+-\w{6}$/;

/** The directory of one backend, with a liveness socket. Disposing removes it. */
export interface Home extends AsyncDisposable {
  readonly path: string;
  /** The directory of all. */
  readonly base: string;
}

/** Makes a directory. Throws where somebody else has the name of the base. */
export async function makeHome(): Promise<Home> {
  const base = await ownBase();
  const path = await mkdtemp(join(base, `${process.pid}-`));
  await using stack = new AsyncDisposableStack();
  stack.defer(() => rm(path, { recursive: true, force: true }));
  await chmod(path, openMode);
  stack.use(await openLivenessSocket(path));
  const owned = stack.move();
  return { path, base, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}

/**
 * Ends the sandboxes of processes that were killed, and removes their directories. Containers are
 * the business of their backends.
 *
 * @param uid see `BackendOptions.uid`
 */
export async function sweepHomes(
  base: string,
  uid: number | undefined,
  onRemoveFailed: (error: unknown) => void,
): Promise<void> {
  const remover = new TreeRemover(uid);
  for (const name of await readdir(base)) {
    const home = join(base, name);
    if (!homeName.test(name) || (await isInUse(home))) continue;
    const workers = await readdir(join(home, workIn)).catch(() => []);
    await Promise.all(workers.map((worker) => endOrphans(ownerTag(worker))))
      .then(() => remover.remove(home))
      .catch(onRemoveFailed);
  }
}

/** The directory of this user's backends. */
async function ownBase(): Promise<string> {
  const uid = process.getuid?.();
  const base = join(tmpdir(), `str-runtime-${uid}`);
  await mkdir(base, { mode: openMode }).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== "EEXIST") throw error;
  });
  const found = await lstat(base);
  if (!found.isDirectory() || found.uid !== uid)
    throw new Error(`${base} is no directory of this user`);
  await chmod(base, openMode);
  return base;
}
