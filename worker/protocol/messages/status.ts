/**
 * A status notification: a JSON-RPC notification without an id.
 */
import { type StatusDetails, encodeStatusDetails } from "./status-details.ts";

/** The method of a status notification (design document, section 5). */
export const statusMethod = "sam_remote_tool/status";

/**
 * Encodes one status of a running call as UTF-8 JSON. `atMs` is epoch milliseconds. The details
 * follow the members that every agent reads.
 */
export function encodeStatus(
  taskId: string,
  text: string,
  atMs: number,
  details: StatusDetails = {},
): Uint8Array {
  return Buffer.from(
    JSON.stringify({
      jsonrpc: "2.0",
      method: statusMethod,
      params: {
        task_id: taskId,
        status_text: text,
        timestamp: new Date(atMs).toISOString(),
        ...encodeStatusDetails(details),
      },
    }),
  );
}
