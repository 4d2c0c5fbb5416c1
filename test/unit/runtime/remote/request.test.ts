/**
 * What is sent for a call of a tool of another worker.
 */
import { expect, test } from "vitest";
import type { GatewayCall } from "../../../../worker/invocation/steps/gateway.ts";
import type { Announcement } from "../../../../worker/protocol/discovery/announcement.ts";
import type { Invocation } from "../../../../worker/protocol/invocation.ts";
import { maxMessageBytes, maxTimeoutSeconds } from "../../../../worker/protocol/limits.ts";
import { decodeRequest, readReplyAddress } from "../../../../worker/protocol/messages/request.ts";
import { requestOf } from "../../../../worker/runtime/remote/request.ts";
import type { JsonObject } from "../../../../worker/support/json/json.ts";

const announcement: Announcement = {
  description: undefined,
  instructions: undefined,
  parameters: undefined,
  result: undefined,
  artifactParameters: new Map([
    ["map", { isList: false, isOptional: true }],
    ["pictures", { isList: true, isOptional: false }],
  ]),
  allowedCallers: undefined,
};
const outerCall = {
  caller: { appName: "Agent", userId: "u", sessionId: "s" },
  toolConfig: { secret: "of the outer tool" },
  requestedProfile: undefined,
  taskId: "task",
};

/** The request as the other worker reads it, and its user properties. */
function sent(
  outer: Partial<Invocation> = {},
  args: JsonObject = {},
  leftMs = 9_999,
): { readonly invocation: Invocation; readonly properties: Readonly<Record<string, unknown>> } {
  const call = { callId: "inner", toolId: "weather", toolName: "weather", args, depth: 2 };
  const reply = { id: "id", replyTo: "ns/a2a/v1/sam_remote_tool/response/worker/id" };
  const message = requestOf(
    { invocation: { ...outerCall, ...outer }, context: {} } as unknown as GatewayCall,
    call,
    { namespace: "ns", reply, agent: "worker", leftMs, announcement },
  );
  const properties = message.properties ?? {};
  const texts = Object.entries(properties).map(([name, value]) => [name, String(value)] as const);
  const address = readReplyAddress(Object.fromEntries(texts));
  if (address === undefined) throw new Error("there is no reply topic");
  const document: unknown = JSON.parse(Buffer.from(message.payload).toString());
  return { invocation: decodeRequest(document, address, 0), properties };
}

test("a call is of the outer caller and the given depth, and has no secret of the outer tool", () => {
  const { invocation, properties } = sent({
    authToken: "token",
    traceparent: `00-${"1".repeat(32)}-${"2".repeat(16)}-01`,
  });
  expect(invocation).toMatchObject({
    ...{ id: "id", taskId: "id", toolName: "weather", toolConfig: {}, depth: 2 },
    ...{ caller: outerCall.caller, authToken: "token", statusTo: undefined },
    traceparent: `00-${"1".repeat(32)}-${"2".repeat(16)}-01`,
  });
  expect(properties).toMatchObject({ clientId: "worker", userId: "u" });
  expect(sent().properties).not.toHaveProperty("authToken");
});

test("the request's bounds go along, and of its configurations that of the called tool", () => {
  const toolConfigs = new Map([
    ["weather", { token: "1" }],
    ["other", { token: "2" }],
  ]);
  const gateway = { tools: ["weather"], limits: { maxDepth: 1 }, toolConfigs };
  const { invocation } = sent({ gateway, requestedProfile: "restrictive" });
  expect(invocation.toolConfig).toEqual({ token: "1" });
  expect(invocation.requestedProfile).toBe("restrictive");
  expect(invocation.gateway).toEqual({ ...gateway, toolConfigs: new Map() });
});

test("artifacts that are known as such are referred to by name", () => {
  const { invocation } = sent({}, { map: "a.png", pictures: ["b.png", 1, "c.png"], city: "d.png" });
  expect([...invocation.references]).toEqual([
    ["map", { filename: "a.png", version: undefined }],
    ["pictures[0]", { filename: "b.png", version: undefined }],
    ["pictures[2]", { filename: "c.png", version: undefined }],
  ]);
  expect(sent({}, { map: null }).invocation.references.size).toBe(0);
});

test.each([
  [9_999, 9],
  [1, 1],
  [1e9, maxTimeoutSeconds],
])("of %d ms that are left the other worker gets %d whole seconds", (leftMs, seconds) => {
  expect(sent({}, {}, leftMs).invocation.timeoutSeconds).toBe(seconds);
});

test("a request that is too large is refused, for good", () => {
  const error = { code: "RESOURCE_EXHAUSTED", retryable: false, op: "validate_input" };
  expect(() => sent({}, { text: "x".repeat(maxMessageBytes) })).toThrow(
    expect.objectContaining(error),
  );
});
