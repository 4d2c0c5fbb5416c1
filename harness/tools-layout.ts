/**
 * Directories of a manifest's tools: `python/`, `node/` and `executable/` beside it, or its own.
 */
import { mkdir, stat } from "node:fs/promises";
import { join, resolve } from "node:path";

/** Absolute paths. */
export interface ToolsLayout {
  readonly manifestPath: string;
  readonly pythonDir: string;
  readonly nodeDir: string;
  readonly executableDir: string;
}

/** A directory is flat when it has a manifest, and a directory for no language. */
export async function layoutOf(directory: string): Promise<ToolsLayout> {
  const path = resolve(directory);
  const manifestPath = join(path, "manifest.yaml");
  const divided = {
    pythonDir: join(path, "python"),
    nodeDir: join(path, "node"),
    executableDir: join(path, "executable"),
  };
  const found = await Promise.all(Object.values(divided).map(isDirectory));
  return found.includes(true) || !(await isThere(manifestPath))
    ? { manifestPath, ...divided }
    : { manifestPath, pythonDir: path, nodeDir: path, executableDir: path };
}

/**
 * Makes the directories of all languages: a worker opens only those that are there when it starts,
 * and a first tool of another language may come any time.
 */
export async function makeLanguageDirs(layout: ToolsLayout): Promise<void> {
  const { pythonDir, nodeDir, executableDir } = layout;
  for (const path of [pythonDir, nodeDir, executableDir]) await mkdir(path, { recursive: true });
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
