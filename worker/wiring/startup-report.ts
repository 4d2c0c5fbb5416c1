/**
 * What a worker says of itself and its host when it has started, and `--check` of both.
 */
import type { Config } from "../config/config.ts";
import { invokeTopic } from "../protocol/topics.ts";
import { type HostCheck, reportedChecks } from "../sandbox/host-check.ts";
import { withHostNetwork } from "../sandbox/profile.ts";
import { isolates } from "../sandbox/registry.ts";
import type { FactsOf } from "../telemetry/events.ts";
import { logEvent } from "../telemetry/log-event.ts";
import type { Foundation } from "./foundation.ts";
import { type Host, isRoot } from "./host.ts";

/**
 * Names, topics, store and sandbox features for the operator.
 *
 * @param further checks of sandboxes that their backend does not make
 */
export function startupFacts(
  config: Config,
  foundation: Foundation,
  further: readonly HostCheck[] = [],
): FactsOf<"worker.ready"> {
  const { backend, store, runners, catalog, profiles } = foundation;
  const all = [...profiles.values()].map((written) => {
    const profile = withHostNetwork(written, config.sandbox.hostNetwork);
    return { profile, ...backend.facts(profile) };
  });
  return {
    namespace: config.namespace,
    workerId: config.workerId,
    group: config.group,
    queues: Object.fromEntries(config.queues),
    topics: [...catalog.manifest.tools.keys()].map((tool) => invokeTopic(config.namespace, tool)),
    unavailableTools: Object.fromEntries(
      Array.from(catalog.manifest.unavailable, ([name, { reason }]) => [name, reason]),
    ),
    store: store.kind,
    sandboxes: Object.fromEntries(
      all.map(({ profile, technology, enforcement, unenforced, checks }) => [
        profile.backend,
        {
          technology,
          enforcement,
          unenforced,
          checks: reportedChecks(
            isolates(profile) ? [...checks, ...further] : checks,
            config.sandbox.minimum,
          ),
        },
      ]),
    ),
    runners: [...runners.values()].map((runner) => runner.description),
    profiles: all.map(({ profile, clamped }) => ({ ...profile, clampedByHost: clamped })),
  };
}

/**
 * Logs missing sandbox features of this host with remedies, and an unneeded root user.
 */
export function logAdvice(config: Config, { log }: Host, foundation: Foundation): void {
  for (const { name, state, finding, remedy } of checksOf(foundation)) {
    const facts = { part: "sandbox", check: name, state, finding, remedy };
    if (state !== "held") logEvent(log, "sandbox.check_not_held", facts);
  }
  if (!isRoot()) return;
  const advice = "start the worker as an ordinary user, who needs no capability";
  logEvent(log, "worker.root_not_needed", { sandboxUid: config.sandbox.uid, advice });
}

/** The host checks of all profiles, without duplicates. */
function checksOf({ backend, profiles }: Foundation): Iterable<HostCheck> {
  const all = [...profiles.values()].flatMap((profile) => backend.facts(profile).checks);
  return new Map(all.map((check) => [check.name, check])).values();
}
