/**
 * Cancel of a call: a JSON-RPC notification on the call's own topic. Workers act on topic and user
 * properties alone, since the payloads of other peers differ.
 */

/** The method of a cancel. */
export const cancelMethod = "sam_remote_tool/cancel";

/** Encodes the cancel of a call as UTF-8 JSON. The id is also the task id, as agents have it. */
export function encodeCancel(correlationId: string): Uint8Array {
  const params = { task_id: correlationId };
  return Buffer.from(JSON.stringify({ jsonrpc: "2.0", method: cancelMethod, params }));
}
