/**
 * Trials: which limits the backend keeps on this host, seen by programs that reach for each.
 */
import type { Json } from "../../support/json/json.ts";
import { RuntimeError } from "../api/errors.ts";
import type { Evidence } from "../api/limits.ts";

const mebibyte = 1024 * 1024;

/** What a trial runs under; a program is stopped, or comes to a value. */
export type RunTrial = (
  code: string,
  limits: { readonly memoryBytes: number; readonly cpuQuotaMillis: number },
) => Promise<Json>;

/** Milliseconds of processor time of the trial of that. */
const cpuTrialMs = 20;
/** Looks for a way to a process or a file; `true` where there is none. */
const reach = `
const modules = ["node:fs", "fs", "node:child_process", "std", "os", "./thread.js"];
const refused = await Promise.all(modules.map((name) => import(name).then(() => false, () => true)));
const names = ["process", "require", "module", "std", "os", "Deno", "Bun", "fetch", "WebAssembly"];
refused.every(Boolean) && names.every((name) => !(name in globalThis));
`;

/** The limits that stopped programs which reached for them, or that nothing inside can reach. */
export async function tryLimits(run: RunTrial): Promise<Evidence> {
  const memoryBytes = 16 * mebibyte;
  const limits = { memoryBytes, cpuQuotaMillis: Infinity };
  const [memory, cpu, isBare] = await Promise.all([
    limitOf(run("const kept = []; for (;;) kept.push([1, 2, 3])", limits)),
    limitOf(run("for (;;);", { memoryBytes, cpuQuotaMillis: cpuTrialMs })),
    run(reach, limits),
  ]);
  return {
    ...(memory === "memory" && { memory: "engine" as const }),
    ...(cpu === "cpu" && { cpu: "guard" as const }),
    ...(isBare === true && { pids: "absent" as const, disk: "absent" as const }),
  };
}

/** The limit that ended a program; undefined where it ended otherwise. */
async function limitOf(running: Promise<Json>): Promise<Json | undefined> {
  try {
    await running;
    return undefined;
  } catch (error) {
    return error instanceof RuntimeError ? error.data?.["limit"] : undefined;
  }
}
