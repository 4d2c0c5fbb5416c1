/**
 * The invoke request on the wire, as real agents send it and as nobody should.
 */
import { fc, test as propertyTest } from "../../support/properties/property.ts";
import { describe, expect, test } from "vitest";
import { InvocationError } from "../../../worker/protocol/errors.ts";
import type { Invocation } from "../../../worker/protocol/invocation.ts";
import {
  type ReplyAddress,
  decodeRequest,
  readId,
  readReplyAddress,
  unknownId,
} from "../../../worker/protocol/messages/request.ts";

type Members = Record<string, unknown>;

const address: ReplyAddress = {
  replyTo: "ns/a2a/v1/sam_remote_tool/response/AgentA/c1",
  statusTo: "ns/a2a/v1/sam_remote_tool/status/AgentA/c1",
  sentAtMs: 1_795_200_128_599,
};
const receivedAtMs = 1_795_200_129_000;

/** The least that is a request; members may be changed, or left out by `undefined`. */
function request(params: Members = {}, outside: Members = {}): Members {
  return {
    jsonrpc: "2.0",
    id: "e524ecb5",
    method: "sam_remote_tool/invoke",
    params: {
      task_id: "task-1",
      tool_name: "process_file",
      app_name: "MyAgent",
      user_id: "user-42",
      session_id: "web-session-abc123",
      ...params,
    },
    ...outside,
  };
}

function decode(document: unknown): Invocation {
  // Through text, as requests come: what is undefined is left out.
  return decodeRequest(JSON.parse(JSON.stringify(document)), address, receivedAtMs);
}

function refusalOf(document: unknown): string {
  try {
    decode(document);
  } catch (error) {
    expect(error).toBeInstanceOf(InvocationError);
    expect((error as InvocationError).code).toBe("INVALID_REQUEST");
    return (error as InvocationError).message;
  }
  throw new Error("the request was accepted");
}

describe("a request as real agents send it", () => {
  test("is understood to the last member", () => {
    const payload =
      '{"jsonrpc": "2.0", "id": "21f09531-5304-441c-853a-2a7132d15bde", "method": "sam_remote_tool/invoke", "params": {"task_id": "21f09531-5304-441c-853a-2a7132d15bde", "tool_name": "echo_plain", "args": {"message": "hi €"}, "tool_config": {}, "app_name": "AgentA", "user_id": "u", "session_id": "s", "preloaded_artifacts": {}, "artifact_references": {}, "timeout_seconds": 30, "sandbox_profile": "standard"}}';
    const properties = {
      replyTo:
        "gold_lastpy/a2a/v1/sam_remote_tool/response/AgentA/21f09531-5304-441c-853a-2a7132d15bde",
      statusTo:
        "gold_lastpy/a2a/v1/sam_remote_tool/status/AgentA/21f09531-5304-441c-853a-2a7132d15bde",
      clientId: "AgentA",
      userId: "u",
      timestamp: "1795200128599",
    };
    const invocation = decodeRequest(
      JSON.parse(payload),
      readReplyAddress(properties)!,
      1_795_200_128_700,
    );
    expect(invocation).toStrictEqual({
      id: "21f09531-5304-441c-853a-2a7132d15bde",
      taskId: "21f09531-5304-441c-853a-2a7132d15bde",
      toolName: "echo_plain",
      args: { message: "hi €" },
      toolConfig: {},
      caller: { appName: "AgentA", userId: "u", sessionId: "s" },
      references: new Map(),
      preloaded: new Map(),
      timeoutSeconds: 30,
      requestedProfile: "standard",
      replyTo: properties.replyTo,
      statusTo: properties.statusTo,
      sentAtMs: 1_795_200_128_599,
    });
  });

  test("of the design document brings its artifact reference", () => {
    const invocation = decode(
      request({
        args: { input_file: "data.csv" },
        tool_config: {},
        preloaded_artifacts: {},
        artifact_references: { input_file: { filename: "data.csv", version: 0 } },
        timeout_seconds: 30,
        sandbox_profile: "standard",
      }),
    );
    expect(invocation.references).toEqual(
      new Map([["input_file", { filename: "data.csv", version: 0 }]]),
    );
    expect(invocation.args).toEqual({ input_file: "data.csv" });
  });

  test("for a parameter that is a list brings an artifact for each place", () => {
    const { references } = decode(
      request({
        artifact_references: {
          "files[0]": { filename: "a.csv" },
          "files[1]": { filename: "user:b.csv", version: 3 },
        },
      }),
    );
    expect(references).toEqual(
      new Map([
        ["files[0]", { filename: "a.csv", version: undefined }],
        ["files[1]", { filename: "user:b.csv", version: 3 }],
      ]),
    );
  });

  test("may bring the content of artifacts in base64", () => {
    const content = Buffer.from([0, 255, 10, 13]).toString("base64");
    const { preloaded } = decode(
      request({
        preloaded_artifacts: {
          data: { filename: "d.bin", content, mime_type: "image/png", version: 7, metadata: {} },
        },
      }),
    );
    expect(preloaded.get("data")).toEqual({
      filename: "d.bin",
      version: 7,
      mimeType: "image/png",
      bytes: Buffer.from([0, 255, 10, 13]),
    });
  });

  test("may bring as much content as a message holds, and none at all", () => {
    const content = Buffer.alloc(7_000_000, "artifact").toString("base64");
    const { preloaded } = decode(
      request({
        preloaded_artifacts: {
          large: { filename: "large", content },
          empty: { filename: "empty", content: "" },
        },
      }),
    );
    expect(preloaded.get("large")?.bytes.byteLength).toBe(7_000_000);
    expect(preloaded.get("empty")?.bytes.byteLength).toBe(0);
  });
});

describe("what a request leaves out", () => {
  const defaults = {
    args: {},
    toolConfig: {},
    references: new Map(),
    preloaded: new Map(),
    timeoutSeconds: undefined,
    requestedProfile: undefined,
  };
  const optional = {
    args: null,
    tool_config: null,
    preloaded_artifacts: null,
    artifact_references: null,
    timeout_seconds: null,
    sandbox_profile: null,
  };

  test("has its default", () => {
    expect(decode(request())).toMatchObject(defaults);
  });

  test("may be null as well", () => {
    expect(decode(request(optional))).toMatchObject(defaults);
  });

  test("may be the protocol's version", () => {
    expect(decode(request({}, { jsonrpc: undefined })).id).toBe("e524ecb5");
  });

  test("may be type and version of preloaded content, or both null", () => {
    const { preloaded } = decode(
      request({
        preloaded_artifacts: {
          without: { filename: "f", content: "" },
          nulls: { filename: "f", content: "", mime_type: null, version: null },
        },
      }),
    );
    for (const artifact of preloaded.values()) {
      expect(artifact).toMatchObject({ mimeType: "application/octet-stream", version: 0 });
    }
    expect(preloaded.size).toBe(2);
  });

  test("may be the version of a reference, or null: the latest is meant", () => {
    const { references } = decode(
      request({
        artifact_references: { a: { filename: "f" }, b: { filename: "f", version: null } },
      }),
    );
    expect([...references.values()].map(({ version }) => version)).toEqual([undefined, undefined]);
  });
});

describe("members that nobody knows", () => {
  test("are ignored at every level", () => {
    const extra = { trace: "x", "": null };
    const plain = request({
      artifact_references: { a: { filename: "f" } },
      preloaded_artifacts: { b: { filename: "f", content: "" } },
    });
    const extended = request(
      {
        artifact_references: { a: { filename: "f", ...extra } },
        preloaded_artifacts: { b: { filename: "f", content: "", ...extra } },
        ...extra,
      },
      extra,
    );
    expect(decode(extended)).toStrictEqual(decode(plain));
  });

  test("do not become anything by the name of __proto__", () => {
    const text = JSON.stringify(request()).replace(
      '"task_id":"task-1"',
      '"__proto__":{"task_id":"inherited"}',
    );
    expect(() => decodeRequest(JSON.parse(text), address, 0)).toThrow("params.task_id: missing");
  });
});

describe("parameters named like members of every object", () => {
  test("name artifacts as any others do", () => {
    const text = JSON.stringify(request()).replace(
      '"task_id"',
      '"artifact_references":{"__proto__":{"filename":"p.csv"},"constructor":{"filename":"c.csv"}},"task_id"',
    );
    const { references } = decodeRequest(JSON.parse(text), address, 0);
    expect([...references].map(([name, { filename }]) => [name, filename])).toEqual([
      ["__proto__", "p.csv"],
      ["constructor", "c.csv"],
    ]);
  });

  test("stay arguments of the tool", () => {
    const text = JSON.stringify(request()).replace('"task_id"', '"args":{"__proto__":1},"task_id"');
    expect(Object.keys(decodeRequest(JSON.parse(text), address, 0).args)).toEqual(["__proto__"]);
  });
});

describe("a request that is wrong", { tags: "promise-R6" }, () => {
  test.each([null, [], "text", 5, true])("is no object: %j", (document) => {
    expect(refusalOf(document)).toBe("Invalid request: the request must be a JSON object");
  });

  const requiredTexts = ["task_id", "tool_name", "app_name", "user_id", "session_id"];

  test.each(requiredTexts)("lacks %s and is told so", (field) => {
    expect(refusalOf(request({ [field]: undefined }))).toBe(
      `Invalid request: params.${field}: missing, expected string`,
    );
  });

  const wrongTexts = [null, 5, true, {}, [], "", "x".repeat(1_001)];
  test.each(requiredTexts.flatMap((field) => wrongTexts.map((value) => [field, value] as const)))(
    "has a %s that is no usable text (%j) and is told which field",
    (field, value) => {
      expect(refusalOf(request({ [field]: value }))).toMatch(
        new RegExp(`^Invalid request: params\\.${field}: `),
      );
    },
  );

  test.each<[string, Members]>([
    ["id", { id: undefined }],
    ["id", { id: 5 }],
    ["id", { id: null }],
    ["id", { id: "" }],
    ["id", { id: "x".repeat(1_001) }],
    ["jsonrpc", { jsonrpc: "1.0" }],
    ["jsonrpc", { jsonrpc: 2 }],
    ["method", { method: undefined }],
    ["method", { method: "sam_remote_tool/init" }],
    ["params", { params: undefined }],
    ["params", { params: [] }],
    ["params", { params: null }],
  ])("is told of a wrong %s: %j", (field, outside) => {
    expect(refusalOf(request({}, outside))).toMatch(new RegExp(`^Invalid request: ${field}: `));
  });

  const file = { filename: "f", content: "" };
  test.each<[string, Members]>([
    ["args", { args: [] }],
    ["args", { args: "x" }],
    ["tool_config", { tool_config: 1 }],
    ["timeout_seconds", { timeout_seconds: 0 }],
    ["timeout_seconds", { timeout_seconds: -1 }],
    ["timeout_seconds", { timeout_seconds: "30" }],
    ["timeout_seconds", { timeout_seconds: 86_401 }],
    ["sandbox_profile", { sandbox_profile: "" }],
    ["sandbox_profile", { sandbox_profile: 3 }],
    ["artifact_references", { artifact_references: [] }],
    ["artifact_references", { artifact_references: "x" }],
    ["artifact_references.in", { artifact_references: { in: "data.csv" } }],
    ["artifact_references.in.filename", { artifact_references: { in: {} } }],
    ["artifact_references.in.filename", { artifact_references: { in: { filename: "" } } }],
    [
      "artifact_references.in.version",
      { artifact_references: { in: { filename: "f", version: -1 } } },
    ],
    [
      "artifact_references.in.version",
      { artifact_references: { in: { filename: "f", version: 1.5 } } },
    ],
    [
      "artifact_references.in.version",
      { artifact_references: { in: { filename: "f", version: "latest" } } },
    ],
    ["preloaded_artifacts", { preloaded_artifacts: [] }],
    ["preloaded_artifacts.in.filename", { preloaded_artifacts: { in: { content: "" } } }],
    ["preloaded_artifacts.in.content", { preloaded_artifacts: { in: { filename: "f" } } }],
    [
      "preloaded_artifacts.in.content",
      { preloaded_artifacts: { in: { filename: "f", content: "no base64!" } } },
    ],
    [
      "preloaded_artifacts.in.content",
      { preloaded_artifacts: { in: { filename: "f", content: "YQ=" } } },
    ],
    [
      "preloaded_artifacts.in.mime_type",
      { preloaded_artifacts: { in: { ...file, mime_type: 5 } } },
    ],
    ["preloaded_artifacts.in.version", { preloaded_artifacts: { in: { ...file, version: 0.5 } } }],
  ])("is told of a wrong params.%s: %j", (field, params) => {
    const message = refusalOf(request(params));
    expect(message.startsWith(`Invalid request: params.${field}: `), message).toBe(true);
  });

  test("brings or names at most 1000 artifacts", () => {
    const many = (count: number, value: object): Members =>
      Object.fromEntries(Array.from({ length: count }, (_, index) => [`p[${index}]`, value]));
    const references = { artifact_references: many(1_000, { filename: "f" }) };
    expect(decode(request(references)).references.size).toBe(1_000);
    expect(refusalOf(request({ artifact_references: many(1_001, { filename: "f" }) }))).toBe(
      "Invalid request: params.artifact_references: expected at most 1000 entries",
    );
    expect(refusalOf(request({ preloaded_artifacts: many(1_001, file) }))).toBe(
      "Invalid request: params.preloaded_artifacts: expected at most 1000 entries",
    );
  });

  test("is never told its own values, which may be secrets", () => {
    const secret = "hunter2";
    for (const params of [
      { timeout_seconds: secret },
      { args: secret },
      { tool_config: secret },
      { preloaded_artifacts: { in: { filename: "f", content: `${secret}!` } } },
    ]) {
      expect(refusalOf(request(params))).not.toContain(secret);
    }
  });

  test("is told of a field of endless name in few words", () => {
    const parameter = "😀".repeat(100_000);
    const message = refusalOf(request({ artifact_references: { [parameter]: {} } }));
    expect(message).toMatch(/^Invalid request: params\.artifact_references\.😀/u);
    expect(message.length).toBeLessThan(400);
    expect(message.isWellFormed()).toBe(true);
  });

  propertyTest.prop([fc.jsonValue({ maxDepth: 4 }), fc.constantFrom("params", "id", "document")])(
    "is refused with INVALID_REQUEST, whatever it is",
    (value, place) => {
      const document =
        place === "params"
          ? request({ args: value, artifact_references: value, preloaded_artifacts: value })
          : place === "id"
            ? request({}, { id: value })
            : value;
      try {
        decode(document);
      } catch (error) {
        expect(error).toMatchObject({ name: "InvocationError", code: "INVALID_REQUEST" });
      }
    },
  );
});

describe("a decoded request", () => {
  test("cannot be changed", () => {
    const invocation = decode(request()) as { toolName: string };
    expect(() => (invocation.toolName = "other")).toThrow(TypeError);
  });

  test("does not change with the document that its names came from", () => {
    const document = request({
      artifact_references: { in: { filename: "f", version: 1 } },
      preloaded_artifacts: { pre: { filename: "f", content: "YQ==" } },
    });
    const params = document["params"] as Record<string, Record<string, Members>>;
    const invocation = decodeRequest(document, address, receivedAtMs);
    params["artifact_references"]!["in"]!["filename"] = "../../etc/passwd";
    params["artifact_references"]!["other"] = { filename: "g" };
    params["preloaded_artifacts"]!["pre"]!["filename"] = "../../etc/passwd";
    Object.assign(params, { tool_name: "other", user_id: "somebody else" });
    expect(invocation).toMatchObject({
      toolName: "process_file",
      caller: { userId: "user-42" },
      references: new Map([["in", { filename: "f", version: 1 }]]),
    });
    expect(invocation.preloaded.get("pre")?.filename).toBe("f");
  });

  test.each([
    ["what the caller says", 5_000, 5_000],
    ["its receipt, when the caller says nothing", undefined, 10_000],
    ["its receipt, when the caller's clock is ahead", 60_000, 10_000],
  ])("was sent at %s", (_case, sentAtMs, expected) => {
    expect(decodeRequest(request(), { ...address, sentAtMs }, 10_000).sentAtMs).toBe(expected);
  });

  test("goes back to where the message, not the request, says", () => {
    const invocation = decode(request({ replyTo: "elsewhere" }, { replyTo: "elsewhere" }));
    expect(invocation).toMatchObject({ replyTo: address.replyTo, statusTo: address.statusTo });
  });

  test("may grant fractions of a second", () => {
    expect(decode(request({ timeout_seconds: 0.25 })).timeoutSeconds).toBe(0.25);
    expect(decode(request({ timeout_seconds: 86_400 })).timeoutSeconds).toBe(86_400);
  });
});

describe("the reply address of a message", () => {
  test("is read from its user properties", () => {
    expect(
      readReplyAddress({ replyTo: "r/1", statusTo: "s/1", timestamp: "1795200128599" }),
    ).toEqual({ replyTo: "r/1", statusTo: "s/1", sentAtMs: 1_795_200_128_599 });
  });

  test.each([
    ["00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", true],
    ["cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00", true],
    ["ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", false],
    ["00-00000000000000000000000000000000-b7ad6b7169203331-01", false],
    ["00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01", false],
    ["00-0AF7651916CD43DD8448EB211C80319C-B7AD6B7169203331-01", false],
    ["00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\n", false],
    ["", false],
  ])("has the trace context %j: %j", (traceparent, isValid) => {
    expect(readReplyAddress({ replyTo: "r", traceparent })?.traceparent).toBe(
      isValid ? traceparent : undefined,
    );
  });

  test("takes the status topic under its later name too, the first name first", () => {
    expect(readReplyAddress({ replyTo: "r", a2aStatusTopic: "later" })?.statusTo).toBe("later");
    expect(
      readReplyAddress({ replyTo: "r", statusTo: "first", a2aStatusTopic: "later" })?.statusTo,
    ).toBe("first");
  });

  test.each([
    ["none", undefined],
    ["an empty one", ""],
    ["a pattern for many agents", "ns/response/>"],
    ["a pattern for one level", "ns/response/*/c1"],
    ["a control character", "ns/response\n/c1"],
    ["half a character", "ns/response/\ud800"],
    ["more bytes than brokers take", `ns/${"é".repeat(125)}`],
  ])("is none when the reply topic cannot be published to: %s", (_case, replyTo) => {
    expect(
      readReplyAddress(replyTo === undefined ? { statusTo: "s" } : { replyTo, statusTo: "s" }),
    ).toBeUndefined();
  });

  test.each(["", "ns/status/>", "ns/\u0000"])(
    "has no status topic where that cannot be published to: %j",
    (statusTo) => {
      expect(readReplyAddress({ replyTo: "r", statusTo })).toMatchObject({
        replyTo: "r",
        statusTo: undefined,
      });
    },
  );

  // Among them the same time in seconds.
  test.each(["", "soon", "NaN", "Infinity", "-5", "0", "null", "1795200128.6", undefined])(
    "says nothing of the time where that is no time: %j",
    (timestamp) => {
      const properties = timestamp === undefined ? { replyTo: "r" } : { replyTo: "r", timestamp };
      expect(readReplyAddress(properties)?.sentAtMs).toBeUndefined();
    },
  );
});

describe("the id to answer with", () => {
  test("is the request's own, also when the rest is unusable", () => {
    expect(readId({ id: "e524ecb5", params: 5 })).toBe("e524ecb5");
  });

  test.each([null, "text", [], {}, { id: 1 }, { id: null }, { id: "" }, { id: "x".repeat(1_001) }])(
    "is `unknown` where there is none to use: %j",
    (document) => {
      expect(readId(document)).toBe(unknownId);
    },
  );
});
