/**
 * Directories of a manifest's tools: `python/` and `node/` beside it, or its own.
 */
import { mkdir, stat } from "node:fs/promises";
import { join, resolve } from "node:path";

/** Absolute paths. */
export interface ToolsLayout {
  readonly manifestPath: string;
  readonly pythonDir: string;
  readonly nodeDir: string;
}

/** A directory is flat when it has a manifest, and a directory for neither language. */
export async function layoutOf(directory: string): Promise<ToolsLayout> {
  const path = resolve(directory);
  const manifestPath = join(path, "manifest.yaml");
  const [pythonDir, nodeDir] = [join(path, "python"), join(path, "node")];
  const isDivided = (await isDirectory(pythonDir)) || (await isDirectory(nodeDir));
  return isDivided || !(await isThere(manifestPath))
    ? { manifestPath, pythonDir, nodeDir }
    : { manifestPath, pythonDir: path, nodeDir: path };
}

/**
 * Makes the directories of both languages: a worker opens only those that are there when it starts,
 * and a first tool of the other language may come any time.
 */
export async function makeLanguageDirs({ pythonDir, nodeDir }: ToolsLayout): Promise<void> {
  for (const path of [pythonDir, nodeDir]) await mkdir(path, { recursive: true });
}

/** Default directory of tools: the current one with a manifest, otherwise `tools`. */
export async function usualToolsDir(): Promise<string> {
  return (await isThere("manifest.yaml")) ? "." : "tools";
}

/** Whether a directory has a manifest. */
export function hasManifest(directory: string): Promise<boolean> {
  return isThere(join(directory, "manifest.yaml"));
}

export async function isDirectory(path: string): Promise<boolean> {
  return (await stat(path).catch(() => undefined))?.isDirectory() === true;
}

async function isThere(path: string): Promise<boolean> {
  return (await stat(path).catch(() => undefined)) !== undefined;
}
