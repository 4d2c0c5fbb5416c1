/**
 * Opens the starts that the configuration asks for.
 */
import { availableParallelism } from "node:os";
import { CodeWatch } from "./code/code-watch.ts";
import { ColdStarts } from "./cold-starts.ts";
import type { Starts } from "./starts.ts";
import { type WarmOptions, WarmStarts } from "./pooled-starts.ts";

/** What starts are opened with. */
export type StartsOptions = Omit<WarmOptions, "versions" | "cpus" | "random">;

/**
 * Starts with so much memory for sandboxes that wait, or none that wait where that is 0. The caller
 * owns them.
 */
export function openStarts(options: StartsOptions): Starts {
  if (options.maxBytes === 0) return new ColdStarts(options);
  return new WarmStarts({
    ...options,
    versions: new CodeWatch(options),
    cpus: availableParallelism(),
    random: Math.random,
  });
}
