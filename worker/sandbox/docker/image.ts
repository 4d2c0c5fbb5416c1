/**
 * The image of all containers: a root directory with nothing but places for mounts, and links.
 */
import { createHash } from "node:crypto";
import type { SystemDirectory } from "../proc/host.ts";
import { SandboxError } from "../sandbox.ts";
import { type ArchiveEntry, archiveOf } from "./engine/archive.ts";
import type { Engine } from "./engine/containers.ts";

const prefix = "secure-tool-runtime-empty-";
/** Hexadecimal digits behind it, of the content. */
const digits = 16;
/** The engine mounts its init in there. */
const initDirectory = "/sbin";
const directories = ["dev", "etc", "proc", "run", "sandbox", "sys", "usr"];
/** A tmpfs gets the mode of the directory that it is mounted on. */
const openDirectories = ["tmp", "var"];

/** The image's id, made where the engine does not have it yet. Throws SandboxError. */
export async function openImage(
  engine: Engine,
  systemDirectories: readonly SystemDirectory[],
  signal: AbortSignal,
): Promise<string> {
  const archive = archiveOf(entriesOf(systemDirectories));
  const digest = createHash("sha256").update(archive).digest("hex");
  // podman imports under the tag `latest`, whatever it is told.
  const repository = `${prefix}${digest.slice(0, digits)}`;
  const name = `${repository}:latest`;
  const known = await engine.imageId(name, signal);
  if (known !== undefined) return known;
  await engine.importImage(repository, archive, signal);
  const id = await engine.imageId(name, signal);
  if (id === undefined) throw new SandboxError(`the engine has not imported the image ${name}`);
  return id;
}

function entriesOf(systemDirectories: readonly SystemDirectory[]): readonly ArchiveEntry[] {
  const own = systemDirectories.map(({ path, linkTarget }) => ({
    name: path.slice(1),
    linkTarget: path === initDirectory ? undefined : linkTarget,
  }));
  const open = openDirectories.map((name) => ({ name, isOpen: true }));
  return [...directories.map((name) => ({ name })), ...open, ...own];
}
