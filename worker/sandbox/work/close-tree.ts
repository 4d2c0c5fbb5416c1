/**
 * Takes a tree away from those who filled it, so that nobody adds to it while it is removed,
 * whatever descriptors they have.
 */
import { constants } from "node:fs";
import { type FileHandle, open, opendir, rename } from "node:fs/promises";

const openDirectory = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW;
/** What is left to the new owner, who is this process's user, and to nobody else. */
const ownersAlone = 0o700;

/**
 * Makes every directory of a tree this process's own, and has them all lie directly in the top one:
 * each is closed before its names are read, so that none is missed, and none is too deep. Needs the
 * rights of root. Rejects with the system's error.
 */
export async function closeTree(path: string): Promise<void> {
  await using top = await close(Buffer.from(path));
  const names = await directoriesIn(top);
  const taken = new Set(names);
  let last = 0;
  for (const name of names) {
    await using directory = await close(below(top, name));
    for (const inner of await directoriesIn(directory)) {
      while (taken.has(String(last))) last++;
      await rename(below(directory, inner), below(top, String(last)));
      taken.add(String(last));
      names.push(String(last));
    }
  }
}

async function close(path: Buffer): Promise<FileHandle> {
  const directory = await open(path, openDirectory);
  try {
    await directory.chown(process.getuid?.() ?? 0, process.getgid?.() ?? 0);
    await directory.chmod(ownersAlone);
    return directory;
  } catch (error) {
    await directory.close();
    throw error;
  }
}

/**
 * The names of directories, by a character for each byte: they may be text of any kind, or none.
 */
async function directoriesIn(directory: FileHandle): Promise<string[]> {
  const names: string[] = [];
  const entries = await opendir(below(directory, ".").toString("latin1"), { encoding: "latin1" });
  for await (const entry of entries) if (entry.isDirectory()) names.push(entry.name);
  return names;
}

/**
 * A path that the kernel resolves from a descriptor: nothing on the way can be exchanged. See
 * proc_pid_fd(5).
 */
function below(directory: FileHandle, name: string): Buffer {
  return Buffer.from(`/proc/self/fd/${directory.fd}/${name}`, "latin1");
}
