/**
 * What the console shows of a worker.
 */
import type { Config } from "../../config/config.ts";
import { packageVersion } from "../../config/version.ts";
import type { HostView, ProfileView, ToolView, WorkerView } from "../../console/api.ts";
import type { Described, DescribedTools } from "../../discovery/described-tools.ts";
import type { ToolEntry } from "../../manifest/manifest.ts";
import { enforcedLimits } from "../../protocol/execution.ts";
import { type Network, publicNetwork } from "../../protocol/network-rules.ts";
import { type HostCheck, reportedChecks } from "../../sandbox/host-check.ts";
import { withHostNetwork } from "../../sandbox/profile.ts";
import { isolates } from "../../sandbox/registry.ts";
import type { Health } from "../../telemetry/health.ts";
import type { Foundation } from "../foundation.ts";

const version = packageVersion();

/** What is read of the worker. */
export interface ViewParts {
  readonly config: Config;
  readonly foundation: Foundation;
  readonly health: Pick<Health, "missing" | "warnings">;
  readonly described: Pick<DescribedTools, "settled">;
  readonly startedAtMs: number;
  /** Checks of sandboxes that their backend does not make. */
  readonly further: readonly HostCheck[];
}

/** The worker as it is now. */
export function viewOf(parts: ViewParts): WorkerView {
  const { config, foundation, health, startedAtMs } = parts;
  const { catalog, store } = foundation;
  const { manifest } = catalog;
  const missing = health.missing();
  const described = new Map(parts.described.settled.map((each) => [each.tool.name, each]));
  return {
    worker: {
      id: config.workerId,
      version,
      namespace: config.namespace,
      group: config.group,
      broker: config.broker.kind,
      store: store.kind,
      startedAtMs,
    },
    isReady: missing.length === 0,
    missing,
    warnings: health.warnings?.() ?? [],
    queues: Array.from(config.queues, ([name, slots]) => ({ name, slots })),
    manifest: {
      revision: manifest.revision,
      isUsable: catalog.isUsable,
      problems: [
        ...(catalog.isUsable ? [] : ["The file is not usable: the log says why"]),
        ...catalog.warnings,
      ],
      unavailable: Array.from(manifest.unavailable, ([tool, { reason }]) => ({ tool, reason })),
    },
    tools: Array.from(manifest.tools.values(), (tool) =>
      toolView(tool, config, described.get(tool.name)),
    ),
    profiles: profileViews(parts),
    hosts: hostViews(parts),
    keepsOutput: config.toolLogs.to !== "off",
  };
}

function toolView(
  tool: ToolEntry,
  { sandbox, defaultTimeoutSeconds }: Config,
  described: Described | undefined,
): ToolView {
  const { name, runtime, queue, timeoutSeconds, idempotent } = tool;
  const { description, parameters, artifactParameters } = described?.description ?? {};
  return {
    ...{ name, runtime, queue },
    description: description ?? tool.description ?? null,
    parameters: parameters ?? null,
    artifacts: Array.from(artifactParameters ?? [], ([parameter, { isList, isOptional }]) => ({
      name: parameter,
      isList,
      isOptional,
    })),
    problem: described?.failure?.message ?? null,
    profile: tool.profile ?? sandbox.defaultProfile,
    startMode: tool.start,
    timeoutSeconds: timeoutSeconds ?? defaultTimeoutSeconds,
    isIdempotent: idempotent,
  };
}

function profileViews({ config, foundation }: ViewParts): readonly ProfileView[] {
  return Array.from(foundation.profiles.values(), (written) => {
    const profile = withHostNetwork(written, config.sandbox.hostNetwork);
    const { enforcement, unenforced } = foundation.backend.facts(profile);
    const { name, backend, limits, network } = profile;
    const all = enforcedLimits({ limits, enforcedBy: enforcement, timeLimitMs: 0 });
    // The time limit is that of a call.
    return { name, backend, network: wordOf(network), limits: all.slice(0, -1), unenforced };
  });
}

function wordOf(network: Network): string {
  if (typeof network === "string") return network;
  return network === publicNetwork ? "public" : "list";
}

/** The findings of each backend that a profile has. */
function hostViews({ config, foundation, further }: ViewParts): readonly HostView[] {
  const profiles = new Map(
    Array.from(foundation.profiles.values(), (each) => [each.backend, each]),
  );
  return Array.from(profiles, ([backend, profile]) => {
    const { technology, checks } = foundation.backend.facts(profile);
    const all = isolates(profile) ? [...checks, ...further] : checks;
    return { backend, technology, checks: reportedChecks(all, config.sandbox.minimum) };
  });
}
