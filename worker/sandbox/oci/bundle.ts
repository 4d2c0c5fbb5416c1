/**
 * The directory of one container: its configuration, the empty tree that everything is mounted on,
 * and what the runtime keeps of it.
 */
import { chmod, mkdir, rm, stat, symlink, writeFile } from "node:fs/promises";
import { dirname, join, sep } from "node:path";
import { type SystemDirectory, baseEtc } from "../proc/host.ts";
import type { Profile } from "../profile.ts";
import { SandboxError } from "../sandbox.ts";
import type { OciSpec } from "./spec.ts";

/** A container's own directory. Its owner disposes it when the container is gone. */
export interface Bundle extends AsyncDisposable {
  /** Of the container, unique on this host. */
  readonly id: string;
  /** Nothing else has this path on its command line. */
  readonly path: string;
}

/** Where the tree of a bundle lies. */
export function rootOf(path: string): string {
  return join(path, "root");
}

/** Paths of the host, besides /usr, that every sandbox of a profile sees read-only. */
export async function systemPaths(
  profile: Pick<Profile, "readsEtc">,
  directories: readonly SystemDirectory[],
): Promise<readonly string[]> {
  const own = directories.filter(({ linkTarget }) => linkTarget === undefined);
  const etc = await Promise.all(
    (profile.readsEtc ? ["/etc"] : baseEtc).map(async (path) =>
      (await isThere(path)) ? [path] : [],
    ),
  );
  return [...own.map(({ path }) => path), ...etc.flat()];
}

/** Makes a bundle below a directory. Throws SandboxError. */
export async function makeBundle(
  base: string,
  id: string,
  spec: OciSpec,
  directories: readonly SystemDirectory[],
): Promise<Bundle> {
  const path = join(base, id);
  const remove = (): Promise<void> => rm(path, { recursive: true, force: true });
  try {
    const root = rootOf(path);
    await mkdir(root, { recursive: true });
    // mkdir's mode is subject to the umask.
    await chmod(root, 0o755);
    for (const { path: link, linkTarget } of directories)
      if (linkTarget !== undefined) await symlink(linkTarget, join(root, link));
    await makeMountPoints(root, spec);
    await writeFile(join(path, "config.json"), JSON.stringify(spec), { mode: 0o600 });
    return { id, path, [Symbol.asyncDispose]: remove };
  } catch (error) {
    await remove();
    throw new SandboxError(`cannot make the bundle ${path}`, { cause: error });
  }
}

/** What is mounted inside another mount has its place there. */
async function makeMountPoints(root: string, { mounts }: OciSpec): Promise<void> {
  const targets = mounts.map(({ destination }) => destination);
  for (const { destination, source, type } of mounts) {
    if (targets.some((other) => destination.startsWith(other + sep))) continue;
    const place = join(root, destination);
    const isFile = type === "bind" && !(await stat(source)).isDirectory();
    await mkdir(isFile ? dirname(place) : place, { recursive: true });
    if (isFile) await writeFile(place, "");
  }
}

async function isThere(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  );
}
