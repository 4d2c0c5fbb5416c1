/**
 * Facts of the configuration in force, for the log of a worker and for `--check`.
 */
import type { Foundation } from "./foundation.ts";
import type { Config } from "./config/config.ts";
import { invokeTopic } from "./protocol/topics.ts";
import { reportedChecks } from "./sandbox/host-check.ts";
import type { FactsOf } from "./telemetry/events.ts";

/** Names, topics, store and sandbox features for the operator. */
export function startupFacts(config: Config, foundation: Foundation): FactsOf<"worker.ready"> {
  const { backend, store, runners, catalog, profiles } = foundation;
  const all = [...profiles.values()].map((profile) => ({ profile, ...backend.facts(profile) }));
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
          checks: reportedChecks(checks, config.sandbox.minimum),
        },
      ]),
    ),
    runners: [...runners.values()].map((runner) => runner.description),
    profiles: all.map(({ profile, clamped }) => ({ ...profile, clampedByHost: clamped })),
  };
}
