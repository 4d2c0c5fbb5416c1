/**
 * Where the programs lie that are shipped beside the worker and run in sandboxes.
 */
import { fileURLToPath } from "node:url";
import type { Runtime } from "../manifest/manifest.ts";

/** From `worker/wiring/`, and from `dist/chunks/`, where the bundle has this file. */
const root = new URL("../../", import.meta.url);

/** The tool runner of a language. */
export function toolRunnerDir(language: Runtime): string {
  return fileURLToPath(new URL(`tool-runner/${language}`, root));
}

/** The tools of `doctor --attack`. */
export function attacksDir(): string {
  return fileURLToPath(new URL("attacks", root));
}
