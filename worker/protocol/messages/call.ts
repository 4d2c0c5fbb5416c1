/**
 * Encodes a call of a tool, as its caller sends it.
 */
import type { JsonObject } from "../../support/json/json.ts";
import type { Invocation } from "../invocation.ts";
import { invokeMethod } from "./request.ts";

/** A call that is sent. */
export interface OutgoingCall extends Pick<
  Invocation,
  | "id"
  | "toolName"
  | "args"
  | "toolConfig"
  | "caller"
  | "references"
  | "preloaded"
  | "timeoutSeconds"
  | "requestedProfile"
> {
  /** Narrows what the tool may call. May hold secrets. */
  readonly gateway?: JsonObject | undefined;
}

/**
 * Encodes an invoke request as compact UTF-8 JSON (design document, section 5). The id is also the
 * task id, as agents have it.
 */
export function encodeCall(call: OutgoingCall): Uint8Array {
  const { id, caller } = call;
  const params = {
    task_id: id,
    tool_name: call.toolName,
    args: call.args,
    tool_config: call.toolConfig,
    app_name: caller.appName,
    user_id: caller.userId,
    session_id: caller.sessionId,
    preloaded_artifacts: members(call.preloaded, (artifact) => ({
      filename: artifact.filename,
      content: Buffer.from(artifact.bytes).toString("base64"),
      mime_type: artifact.mimeType,
      version: artifact.version,
      metadata: {},
    })),
    // JSON leaves out what is undefined: a version that is left out means the latest.
    artifact_references: members(call.references, ({ filename, version }) => ({
      filename,
      version,
    })),
    timeout_seconds: call.timeoutSeconds,
    sandbox_profile: call.requestedProfile,
    gateway: call.gateway,
  };
  return Buffer.from(JSON.stringify({ jsonrpc: "2.0", id, method: invokeMethod, params }));
}

function members<T>(
  map: ReadonlyMap<string, T>,
  encode: (value: T) => object,
): Record<string, object> {
  return Object.fromEntries(Array.from(map, ([name, value]) => [name, encode(value)] as const));
}
