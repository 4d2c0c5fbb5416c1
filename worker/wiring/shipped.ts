/**
 * Where the parts of the package lie that are shipped beside the worker.
 */
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Runtime } from "../manifest/manifest.ts";

/** From `worker/wiring/`, and from `dist/chunks/`, where the bundle has this file. */
const root = new URL("../../", import.meta.url);

/** The tool runner of a language. */
export function toolRunnerDir(language: Runtime): string {
  return fileURLToPath(new URL(`tool-runner/${language}`, root));
}

/**
 * The page of the console, built. A checkout builds it below the directory; the package has it.
 */
export async function consolePageDir(scratchDir: string): Promise<string> {
  if (!import.meta.url.endsWith(".ts")) return fileURLToPath(new URL("dist/console", root));
  const builder = new URL("scripts/console-page.ts", root).href;
  const { buildConsole } = (await import(builder)) as {
    buildConsole: (directory: string) => Promise<void>;
  };
  const directory = join(scratchDir, "console");
  await buildConsole(directory);
  return directory;
}

/** The tools of `doctor --attack`. */
export function attacksDir(): string {
  return fileURLToPath(new URL("attacks", root));
}
