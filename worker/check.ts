/**
 * `str-worker --check`: opens everything but the broker, loads each tool, says what it found, and
 * closes again.
 */
import { type Host, openFoundation } from "./app.ts";
import type { Config } from "./config/config.ts";
import { checkLoading } from "./load-check.ts";
import { unknownVariables } from "./config/variable-names.ts";
import { startupFacts } from "./startup-facts.ts";

/** What a check found. */
export interface CheckReport {
  /** The findings as indented JSON. */
  readonly text: string;
  /** What a strict check refuses, one line each: of variables, manifest, tools and store. */
  readonly problems: readonly string[];
}

/** Checks this configuration on this host. Throws what opening throws. */
export async function check(config: Config, host: Host, signal: AbortSignal): Promise<CheckReport> {
  await using foundation = await openFoundation(config, host, signal);
  const { manifest, warnings } = foundation.catalog;
  const storeAccess = await foundation.store.access?.(signal);
  const unknown = unknownVariables(host.environment);
  const unloadable = await checkLoading(config, foundation, signal);
  const facts = {
    ...startupFacts(config, foundation),
    unloadableTools: Object.fromEntries(unloadable),
    warnings: [...unknown, ...warnings],
    storeAccess,
  };
  // What is left to workers of its queue is no problem.
  const notServed = [...manifest.unavailable].flatMap(([tool, { reason, queue }]) =>
    queue === undefined ? [`tool "${tool}" is not served: ${reason}`] : [],
  );
  const notLoaded = Array.from(
    unloadable,
    ([tool, { problem }]) => `tool "${tool}" does not load: ${problem}`,
  );
  const problems = [
    ...[...unknown, ...warnings, ...notServed, ...notLoaded],
    ...(storeAccess?.problems ?? []),
  ];
  return { text: JSON.stringify(facts, undefined, 2), problems };
}
