/**
 * Requests and answers as agents have them, held against what real peers said and against the
 * worker's own codec.
 */
import { readFileSync } from "node:fs";
import { fc, test as property } from "../../support/properties/property.ts";
import { describe, expect, test } from "vitest";
import {
  RequestTooLargeError,
  decodeAnswer,
  decodeStatus,
  encodeProbe,
  encodeRequest,
  inboxPattern,
} from "../../../harness/messages.ts";
import { InvocationError } from "../../../worker/protocol/errors.ts";
import { maxMessageBytes } from "../../../worker/protocol/limits.ts";
import { decodeRequest } from "../../../worker/protocol/messages/request.ts";
import { encodeResponse } from "../../../worker/protocol/messages/response.ts";
import { encodeStatus } from "../../../worker/protocol/messages/status.ts";
import {
  invokeTopic,
  responseTopic,
  statusTopic,
  topicMatches,
} from "../../../worker/protocol/topics.ts";
import { type JsonObject, parseJson } from "../../../worker/support/json/json.ts";

interface Recorded {
  readonly topic: string;
  readonly payload: JsonObject;
}

/** Messages that agents and workers of the original exchanged. */
const recorded = readFileSync(
  new URL("../../fixtures/golden/str-golden.jsonl", import.meta.url),
  "utf8",
)
  .trimEnd()
  .split("\n")
  .map((line) => parseJson(Buffer.from(line)) as unknown as Recorded);

function bytes(value: unknown): Uint8Array {
  return Buffer.from(JSON.stringify(value));
}

const address = { replyTo: "reply", statusTo: "status", sentAtMs: 1 };

describe("a request", () => {
  const invokes = recorded.filter(
    ({ topic, payload }) =>
      topic.includes("/invoke/") &&
      Object.keys((payload["params"] as JsonObject)["preloaded_artifacts"] as object).length === 0,
  );

  test("there are recorded requests to compare with", () => {
    expect(invokes.length).toBeGreaterThan(10);
  });

  test.for(invokes)("is the one that a real agent published to $topic", ({ payload }) => {
    const params = payload["params"] as Record<string, never>;
    const references = new Map(Object.entries(params["artifact_references"] ?? {})) as never;
    const encoded = encodeRequest(params["task_id"] ?? "", params["app_name"] ?? "", {
      tool: params["tool_name"] ?? "",
      args: params["args"] ?? {},
      toolConfig: params["tool_config"] ?? {},
      userId: params["user_id"] ?? "",
      sessionId: params["session_id"] ?? "",
      references,
      timeoutSeconds: params["timeout_seconds"] ?? 0,
      profile: params["sandbox_profile"] ?? "",
    });
    expect(JSON.parse(Buffer.from(encoded).toString())).toEqual(payload);
  });

  test("reads in the worker as it was meant", () => {
    const call = {
      tool: "echo_tool",
      args: { a: [1, { b: null }] },
      toolConfig: { key: "value" },
      userId: "u",
      sessionId: "s",
      references: new Map([["p[0]", { filename: "a.txt", version: undefined }]]),
      preloaded: new Map([
        ["q", { filename: "b.bin", version: 0, mimeType: "x/y", bytes: Buffer.from([0, 255]) }],
      ]),
      timeoutSeconds: 7,
      profile: "restrictive",
    };
    const document: unknown = JSON.parse(
      Buffer.from(encodeRequest("id-1", "AgentA", call)).toString(),
    );
    expect(decodeRequest(document, address, address.sentAtMs)).toEqual({
      id: "id-1",
      taskId: "id-1",
      toolName: "echo_tool",
      args: call.args,
      toolConfig: call.toolConfig,
      caller: { appName: "AgentA", userId: "u", sessionId: "s" },
      references: call.references,
      preloaded: call.preloaded,
      timeoutSeconds: 7,
      requestedProfile: "restrictive",
      replyTo: "reply",
      statusTo: "status",
      sentAtMs: 1,
    });
  });

  test("may have ten million bytes, and not one more", () => {
    const overhead = encodeRequest("id", "a", { tool: "t", args: { x: "" } }).byteLength;
    const filling = (sizeBytes: number) => ({
      tool: "t",
      args: { x: "x".repeat(sizeBytes - overhead) },
    });
    expect(encodeRequest("id", "a", filling(maxMessageBytes)).byteLength).toBe(maxMessageBytes);
    expect(() => encodeRequest("id", "a", filling(maxMessageBytes + 1))).toThrow(
      new RequestTooLargeError(maxMessageBytes + 1),
    );
  });

  test("that only asks for a worker is refused by every worker", () => {
    const document: unknown = JSON.parse(Buffer.from(encodeProbe("id")).toString());
    expect(() => decodeRequest(document, address, 0)).toThrow(/Invalid request: params\./);
  });
});

describe("an answer", () => {
  const answers = recorded.filter(({ topic }) => topic.includes("/response/"));

  test.for(answers)("of a real worker is understood: $topic", ({ payload }) => {
    const answer = decodeAnswer(bytes(payload));
    expect(answer.kind).not.toBe("unusable");
    expect(answer.response).toEqual(payload);
  });

  test("of our worker is a success, an error or a timeout", () => {
    const artifact = { filename: "a", version: 3, mimeType: "b/c", sizeBytes: 4 };
    const success = encodeResponse("id", {
      kind: "success",
      toolResult: { x: 1 },
      createdArtifacts: [{ ...artifact, description: undefined }],
      executionTimeMs: 1.6,
    });
    expect(decodeAnswer(success)).toMatchObject({
      kind: "success",
      toolResult: { x: 1 },
      createdArtifacts: [artifact],
      executionTimeMs: 2,
    });
    const error = new InvocationError("TOOL_ERROR", "words");
    expect(
      decodeAnswer(encodeResponse("id", { kind: "error", error, executionTimeMs: 1 })),
    ).toMatchObject({ kind: "error", code: "TOOL_ERROR", message: "words" });
    expect(
      decodeAnswer(encodeResponse("id", { kind: "timeout", executionTimeMs: 9 })),
    ).toMatchObject({ kind: "timed-out", executionTimeMs: 9 });
  });

  const result = { tool_result: {}, execution_time_ms: 1 };
  test.for([
    ["no JSON", Buffer.from("{"), "it is not valid JSON at character 1"],
    ["a list", bytes([]), "it is not a JSON object"],
    ["a number as id", bytes({ id: 1, result }), "id: "],
    ["no id", bytes({ result }), "id: "],
    [
      "a result that is text",
      bytes({ id: "i", result: { ...result, tool_result: "x" } }),
      "result.tool_result",
    ],
    [
      "half a millisecond",
      bytes({ id: "i", result: { ...result, execution_time_ms: 0.5 } }),
      "result.execution_time_ms",
    ],
    [
      "a number as error code",
      bytes({ id: "i", error: { code: -32603, message: "x" } }),
      "error.code",
    ],
    ["nothing", bytes({ id: "i" }), "neither a result nor an error"],
  ] as const)("with %s is unusable, as it is for agents", ([, payload, problem]) => {
    const answer = decodeAnswer(payload);
    expect(answer.kind === "unusable" && answer.problem).toContain(problem);
  });

  property.prop([fc.uint8Array()])("of any bytes is read without throwing", (payload) => {
    expect(decodeAnswer(payload).kind).toBe("unusable");
  });

  test("may have null where members are optional, and members nobody knows", () => {
    const answer = decodeAnswer(
      bytes({ jsonrpc: "2.0", id: "i", error: null, extra: 1, result: { ...result, more: 2 } }),
    );
    expect(answer.kind).toBe("success");
  });
});

describe("a status", () => {
  test("has its text where our worker puts it, or where later peers do", () => {
    expect(decodeStatus(encodeStatus("task", "half way", 0))?.text).toBe("half way");
    expect(decodeStatus(bytes({ status_text: "half way" }))?.text).toBe("half way");
  });

  test.for([bytes({ params: {} }), bytes([]), Buffer.from("{")])(
    "without a text is none: %s",
    (payload) => {
      expect(decodeStatus(payload)).toBeUndefined();
    },
  );
});

describe("what an agent subscribes to", () => {
  test("matches answers and statuses of its calls, and no others", () => {
    const namespace = "response/status/";
    const pattern = inboxPattern(namespace, "Me");
    expect(pattern).toBe("response/status/a2a/v1/sam_remote_tool/*/Me/>");
    for (const topic of [responseTopic, statusTopic]) {
      expect(topicMatches(pattern, topic(namespace, "Me", "id"))).toBe(true);
      expect(topicMatches(pattern, topic(namespace, "You", "id"))).toBe(false);
    }
    expect(topicMatches(pattern, invokeTopic(namespace, "Me"))).toBe(false);
  });
});
