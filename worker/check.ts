/**
 * `str-worker --check`: opens everything but the broker, says what it found, and closes again.
 */
import { type Host, openFoundation } from "./app.ts";
import type { Config } from "./config.ts";
import { startupFacts } from "./worker.ts";

/** The findings as indented JSON. Throws what opening throws. */
export async function check(config: Config, host: Host, signal: AbortSignal): Promise<string> {
  await using foundation = await openFoundation(config, host, signal);
  const storeAccess = await foundation.store.access?.(signal);
  return JSON.stringify({ ...startupFacts(config, foundation), storeAccess }, undefined, 2);
}
