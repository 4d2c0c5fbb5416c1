/**
 * Temporary directories that the sandboxes' uid can pass, unlike a private one.
 */
import { chmod, mkdtemp, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { CommandError } from "./context.ts";

const othersPass = 0o001;

/** The first temporary directory of this host that every user can pass, or undefined. */
export async function passableTemporaryDirectory(): Promise<string | undefined> {
  for (const candidate of candidates()) {
    if (await isPassable(candidate)) return candidate;
  }
  return undefined;
}

/** Creates a directory that others can pass and not list. Disposing removes it. */
export async function createPassableDirectory(
  prefix: string,
): Promise<AsyncDisposable & { readonly path: string }> {
  const parent = await passableTemporaryDirectory();
  if (parent === undefined) {
    throw new CommandError(
      `the user that tools run as could pass none of ${candidates().join(", ")}; point TMPDIR to a directory that every user can pass`,
    );
  }
  const path = await mkdtemp(join(parent, prefix));
  // mkdtemp(3) makes it private.
  await chmod(path, 0o711);
  return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }) };
}

function candidates(): readonly string[] {
  return [tmpdir(), "/var/tmp", "/tmp", "/dev/shm"];
}

async function isPassable(directory: string): Promise<boolean> {
  for (let path = directory; ; path = dirname(path)) {
    const stats = await stat(path).catch(() => undefined);
    if (stats === undefined || (stats.mode & othersPass) === 0) return false;
    if (path === dirname(path)) return true;
  }
}
