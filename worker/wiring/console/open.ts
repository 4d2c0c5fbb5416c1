/**
 * Loads the console of a worker that has one.
 */
import type { Config } from "../../config/config.ts";
import type { Host } from "../host.ts";
import type { WorkerConsole } from "./console.ts";

/** Undefined without `CONSOLE_PORT`. The caller disposes it before the foundation. */
export async function openConsole(config: Config, host: Host): Promise<WorkerConsole | undefined> {
  if (config.console === undefined) return undefined;
  const { WorkerConsole } = await import("./console.ts");
  return new WorkerConsole(config, config.console, host);
}
