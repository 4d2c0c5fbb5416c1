/**
 * Reports the connections of a call's sandbox, each once, to the audit log and to the metrics.
 */
import { type ConnectionLog, firstRefusals } from "../../sandbox/network/sockets.ts";
import type { ToolEgress } from "../../telemetry/metrics/egress-counts.ts";
import type { CallAudit } from "../audit/call-audit.ts";

/** Call it when the tool runs. Disposing it ends the count of open connections. */
export function followConnections(
  connections: ConnectionLog | undefined,
  counts: () => ToolEgress,
  audit: CallAudit | undefined,
): Disposable | undefined {
  if (connections === undefined) return undefined;
  const egress = counts();
  const log = firstRefusals((connection) => audit?.recordConnection(connection));
  connections.follow((connection) => {
    egress.ended(connection);
    log(connection);
  });
  return egress.follow(connections);
}
