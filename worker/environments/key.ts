/**
 * The key of an environment: a hash of all that decides its content.
 */
import { createHash } from "node:crypto";
import type { EnvironmentPlan } from "./environments.ts";

/** Changes when environments are laid out or installed differently. */
const formatVersion = 1;

/** SHA-256, hex. */
export function environmentKey(
  plan: Pick<EnvironmentPlan, "runtime" | "interpreter" | "kind" | "files" | "runsScripts">,
  registry: string,
): string {
  const { runtime, interpreter, kind, files, runsScripts } = plan;
  const facts = [
    formatVersion,
    runtime,
    // Programs of packages name the interpreter by its path.
    [interpreter.identity, interpreter.executable],
    kind,
    [...files].sort(([a], [b]) => (a < b ? -1 : 1)),
    runsScripts,
    registry,
  ];
  return createHash("sha256").update(JSON.stringify(facts)).digest("hex");
}

/** Whether a name can be that of an environment. */
export function isEnvironmentKey(name: string): boolean {
  return /^[0-9a-f]{64}$/.test(name);
}
