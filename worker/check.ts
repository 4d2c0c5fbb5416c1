/**
 * `str-worker --check`: opens all parts but the broker, loads each tool and reports the findings.
 */
import type { Config } from "./config/config.ts";
import { checkLoading } from "./load-check.ts";
import { unknownVariables } from "./config/variable-names.ts";
import { openFoundation } from "./wiring/foundation.ts";
import type { Host } from "./wiring/host.ts";
import { startupFacts } from "./wiring/startup-report.ts";

/** Result of a check. */
export interface CheckReport {
  /** The findings as indented JSON. */
  readonly text: string;
  /** Findings that fail a strict check, one line each. */
  readonly problems: readonly string[];
}

/** Checks this configuration on this host. Throws the errors of opening the parts. */
export async function check(config: Config, host: Host, signal: AbortSignal): Promise<CheckReport> {
  await using foundation = await openFoundation(config, host, signal, { installs: "wait" });
  const { manifest, warnings } = foundation.catalog;
  const storeAccess = await foundation.store.access?.(signal);
  const auditLog = foundation.audit && { problems: foundation.audit.warnings };
  const unknown = unknownVariables(host.environment);
  const unloadable = await checkLoading(config, foundation, signal);
  const facts = {
    ...startupFacts(config, foundation, [await foundation.checkEgress(signal)]),
    unloadableTools: Object.fromEntries(unloadable),
    warnings: [...unknown, ...warnings],
    storeAccess,
    auditLog,
  };
  // A tool of another worker's queue is no problem.
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
    ...(auditLog?.problems ?? []),
  ];
  return { text: JSON.stringify(facts, undefined, 2), problems };
}
