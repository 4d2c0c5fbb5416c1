/**
 * `str-worker --check`: opens everything but the broker, says what it found, and closes again.
 */
import { type Host, openFoundation } from "./app.ts";
import type { Config } from "./config.ts";
import { startupFacts } from "./worker.ts";

/** What a check found. */
export interface CheckReport {
  /** The findings as indented JSON. */
  readonly text: string;
  /** What a strict check refuses, one line each: of manifest and store, and tools that are not served. */
  readonly problems: readonly string[];
}

/** Checks this configuration on this host. Throws what opening throws. */
export async function check(config: Config, host: Host, signal: AbortSignal): Promise<CheckReport> {
  await using foundation = await openFoundation(config, host, signal);
  const { manifest, warnings } = foundation.catalog;
  const storeAccess = await foundation.store.access?.(signal);
  const facts = { ...startupFacts(config, foundation), warnings, storeAccess };
  const notServed = Array.from(
    manifest.unavailable,
    ([tool, { reason }]) => `tool "${tool}" is not served: ${reason}`,
  );
  const problems = [...warnings, ...notServed, ...(storeAccess?.problems ?? [])];
  return { text: JSON.stringify(facts, undefined, 2), problems };
}
