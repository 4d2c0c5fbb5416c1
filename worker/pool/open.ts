/**
 * Opens the starts that the configuration asks for.
 */
import { availableParallelism } from "node:os";
import { ColdStarts } from "./cold-starts.ts";
import { Disposal } from "./disposal.ts";
import { type PooledOptions, PooledStarts } from "./pooled-starts.ts";
import type { Starts } from "./starts.ts";

/** What starts are opened with. */
export type StartsOptions = Omit<PooledOptions, "cpus">;

/** Pooled starts, or cold ones where `maxBytes` is 0. The caller owns them. */
export function openStarts(options: StartsOptions): Starts {
  if (options.maxBytes === 0) return new ColdStarts(options, new Disposal(options));
  return new PooledStarts({ ...options, cpus: availableParallelism() });
}
