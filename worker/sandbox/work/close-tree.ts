/**
 * Closes a tree to the processes that fill it, in spite of their descriptors, before its removal.
 */
import { type FileHandle, open, opendir, rename } from "node:fs/promises";
import { below, bytesBelow, openDirectory } from "../../support/files/below.ts";

/** Mode of a closed directory. */
const ownersAlone = 0o700;

/**
 * Changes the owner of each directory of a tree to this process's user, and moves it into the top
 * directory. Each is closed before it is listed, so that none is missed or too deep. Needs root;
 * rejects with the system's error.
 */
export async function closeTree(path: string): Promise<void> {
  await using top = await close(Buffer.from(path));
  const names = await directoriesIn(top);
  const taken = new Set(names);
  let last = 0;
  for (const name of names) {
    await using directory = await close(bytesBelow(top.fd, name));
    for (const inner of await directoriesIn(directory)) {
      while (taken.has(String(last))) last++;
      await rename(bytesBelow(directory.fd, inner), below(top, String(last)));
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

/** Names of directories in latin1, one character per byte: they may be no UTF-8. */
async function directoriesIn(directory: FileHandle): Promise<string[]> {
  const names: string[] = [];
  const entries = await opendir(below(directory, "."), { encoding: "latin1" });
  for await (const entry of entries) if (entry.isDirectory()) names.push(entry.name);
  return names;
}
