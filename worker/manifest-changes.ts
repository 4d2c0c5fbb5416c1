/**
 * Brings a running worker to each new manifest: its parts, its subscriptions, and what agents hear
 * of its tools.
 */
import type { BrokerSession } from "./broker/broker.ts";
import type { DescribedTools } from "./discovery/described-tools.ts";
import type { Discovery } from "./discovery/discovery.ts";
import { isForAgents } from "./discovery/given.ts";
import { Subscriptions } from "./invocation/deliveries/subscriptions.ts";
import { type Manifest, queuesOfTools } from "./manifest/manifest.ts";
import type { Foundation } from "./wiring/foundation.ts";
import type { Host } from "./wiring/host.ts";

/** The tools that are served, and what runs them. */
interface ServedTools extends Pick<Foundation, "runners"> {
  readonly catalog: Pick<Foundation["catalog"], "manifest" | "changes">;
}

/** What follows the manifest. The caller owns all of it. */
export interface ManifestFollowers {
  readonly foundation: ServedTools;
  readonly session: Pick<BrokerSession, "serve" | "leave">;
  /** Gets each manifest before subscriptions and agents follow it. */
  readonly onManifest: (manifest: Manifest) => void;
  readonly described: Pick<DescribedTools, "follow">;
  /** Undefined where agents are told nothing. */
  readonly discovery: Pick<Discovery, "removed"> | undefined;
}

/**
 * Follows the manifest until the catalog is disposed or the signal aborts. Rejects with the
 * catalog's error or the signal's reason.
 *
 * @param subscribed queue by tool that the session serves already
 */
export async function followManifest(
  { foundation, session, onManifest, described, discovery }: ManifestFollowers,
  subscribed: ReadonlyMap<string, string>,
  { log, clock }: Pick<Host, "log" | "clock">,
  signal: AbortSignal,
): Promise<void> {
  const subscriptionsLog = log.child({ part: "subscriptions" });
  using subscriptions = new Subscriptions(session, subscribed, subscriptionsLog, clock);
  for await (const { manifest, removed, changed } of foundation.catalog.changes) {
    // Agents may call a tool as soon as they hear of it: it is subscribed to first.
    const announce = (): void =>
      described.follow(
        manifest.tools.values().filter(({ name }) => subscriptions.served.has(name)),
      );
    onManifest(manifest);
    const hidden = changed.filter((name) => {
      const tool = manifest.tools.get(name);
      return tool !== undefined && !isForAgents(tool);
    });
    discovery?.removed([...removed, ...hidden]);
    announce();
    await subscriptions.follow(queuesOfTools(manifest), signal, announce);
    announce();
    warmTools(foundation);
  }
}

/** Prepares the runners for the served tools. */
export function warmTools({ catalog, runners }: ServedTools): void {
  for (const tool of catalog.manifest.tools.values())
    if (tool.languages === undefined) runners.get(tool.runtime)?.warm?.(tool);
}
