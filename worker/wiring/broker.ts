/**
 * Opens the broker of a worker and its view of other worker groups, from a configuration.
 */
import type { BrokerSession, ToolPlacement } from "../broker/broker.ts";
import { openBroker } from "../broker/open.ts";
import type { ReconnectingBroker } from "../broker/reconnecting.ts";
import type { Config } from "../config/config.ts";
import { GroupWatch } from "../group/group-watch.ts";
import type { ToolCatalog } from "../manifest/catalog.ts";
import { queuesOfTools } from "../manifest/manifest.ts";
import type { Foundation } from "./foundation.ts";
import type { Host } from "./host.ts";

/** Opens the configured broker, which places tools by the manifest in force. */
export function openWorkerBroker(
  { broker, namespace, workerId, group, queues }: Config,
  { clock, log }: Host,
  catalog: ToolCatalog,
): Promise<ReconnectingBroker> {
  const placement = placementIn(catalog);
  const parts = { namespace, workerId, clock, group, queues, placement };
  return openBroker(broker, { ...parts, log: log.child({ part: "broker" }) });
}

/** Queues by the manifest in force. */
function placementIn(
  catalog: Pick<ToolCatalog, "manifest" | "resolve" | "unavailable">,
): ToolPlacement {
  return {
    queueOf(tool) {
      const refused = catalog.unavailable(tool);
      return catalog.resolve(tool)?.queue ?? refused?.entry?.queue ?? refused?.queue;
    },
    foreignTools: () =>
      [...catalog.manifest.unavailable].flatMap(([name, { entry }]) =>
        entry === undefined ? [name] : [],
      ),
  };
}

/** Starts to look for other groups that serve tools of this one. The caller disposes it. */
export function startGroupWatch(
  { namespace, workerId, group }: Config,
  { clock, log }: Host,
  { catalog, store: { marks } }: Foundation,
  session: BrokerSession,
): GroupWatch {
  const tools = () => queuesOfTools(catalog.manifest).keys();
  const parts = { session, namespace, workerId, group, tools, marks, clock };
  return new GroupWatch({ ...parts, log: log.child({ part: "group" }) });
}
