/**
 * Requests that are none: what can be answered is answered, nothing takes the worker down.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { DevClient } from "../../support/brokers/dev-client.ts";
import { invokeTopic, responseTopic } from "../../../worker/protocol/topics.ts";
import { type Rig, namespace, startRig } from "../../support/workers/rig.ts";
import { loggedFacts } from "../../support/workers/kept-log.ts";

interface Answer {
  readonly result?: { readonly tool_result: { readonly said: string } };
}

describe("a message on an invoke topic", () => {
  let rig: Rig;
  let client: DevClient;
  let counter = 0;

  beforeAll(async () => {
    rig = await startRig({
      tools: { well: { function: "well" }, other: { function: "takes_two" } },
    });
    client = await DevClient.connect(
      {
        host: rig.broker.host,
        port: rig.broker.port,
        name: "raw",
        patterns: [responseTopic(namespace, "raw", ">")],
      },
      AbortSignal.timeout(30_000),
    );
  });
  afterAll(async () => {
    await client[Symbol.asyncDispose]();
    await rig[Symbol.asyncDispose]();
  });

  const valid = (over: object = {}, params: object = {}) => ({
    jsonrpc: "2.0",
    id: "id-1",
    method: "sam_remote_tool/invoke",
    params: {
      task_id: "id-1",
      tool_name: "well",
      app_name: "Agent",
      user_id: "u",
      session_id: "s",
      ...params,
    },
    ...over,
  });

  /** The answer to a payload that is sent as it is. */
  async function answerTo(payload: string, properties: Record<string, string> = {}) {
    const replyTo = responseTopic(namespace, "raw", `call-${counter++}`);
    const signal = AbortSignal.timeout(30_000);
    await client.publish(
      invokeTopic(namespace, "well"),
      Buffer.from(payload),
      { replyTo, ...properties },
      signal,
    );
    for await (const message of client.messages(signal)) {
      if (message.topic === replyTo)
        return JSON.parse(Buffer.from(message.payload).toString()) as Answer;
    }
    throw new Error("the broker went away");
  }

  test("with the members of a real agent, and more, is run", async () => {
    const request = valid(
      { extra: 1 },
      { args: { message: "€" }, extra: [], artifact_references: null },
    );
    expect(await answerTo(JSON.stringify(request))).toEqual({
      jsonrpc: "2.0",
      id: "id-1",
      result: {
        tool_result: { said: "€" },
        execution_time_ms: expect.toSatisfy(Number.isInteger),
        timed_out: false,
        created_artifacts: [],
        execution: expect.objectContaining({ profile: "standard" }),
      },
    });
  });

  const invalid: readonly (readonly [string, unknown, string, RegExp])[] = [
    ["that is no object", [1, 2], "unknown", /must be a JSON object/],
    ["that is a text", "hello", "unknown", /must be a JSON object/],
    ["without an id", { ...valid(), id: undefined }, "unknown", /id: missing/],
    ["with a number as id", valid({ id: 7 }), "unknown", /id: .*expected string/],
    ["with another method", valid({ method: "tools/call" }), "id-1", /method: /],
    ["without params", { ...valid(), params: undefined }, "id-1", /params: missing/],
    ["without a user", valid({}, { user_id: undefined }), "id-1", /params\.user_id: missing/],
    ["with a list as args", valid({}, { args: [1] }), "id-1", /params\.args: expected an object/],
    [
      "with a text as timeout",
      valid({}, { timeout_seconds: "5" }),
      "id-1",
      /params\.timeout_seconds: .*number/,
    ],
    [
      "with content that is no base64",
      valid({}, { preloaded_artifacts: { f: { filename: "a", content: "§§" } } }),
      "id-1",
      /params\.preloaded_artifacts\.f\.content: expected base64/,
    ],
    [
      "with a negative version",
      valid({}, { artifact_references: { f: { filename: "a", version: -1 } } }),
      "id-1",
      /params\.artifact_references\.f\.version/,
    ],
  ];

  for (const [what, request, id, message] of invalid) {
    test(`${what} is INVALID_REQUEST naming the field`, async () => {
      expect(await answerTo(JSON.stringify(request))).toEqual({
        jsonrpc: "2.0",
        id,
        error: { code: "INVALID_REQUEST", message: expect.stringMatching(message) },
      });
    });
  }

  test(
    "that names another tool is run by its topic's, with one warning for the tool",
    { tags: "promise-R2" },
    async () => {
      const request = (named: string) =>
        JSON.stringify(valid({}, { tool_name: named, args: { message: named } }));
      for (const named of ["other", "odd"])
        expect(await answerTo(request(named))).toMatchObject({
          result: { tool_result: { said: named } },
        });
      expect(loggedFacts(rig.logLines, "request.tool_name_differs")).toMatchObject([
        { tool: "well", named: "other" },
      ]);
    },
  );

  test("with Python's NaN in its arguments is run, with null in their place", async () => {
    const text = JSON.stringify(valid({}, { args: { message: 0 } })).replace(
      '"message":0',
      '"message": NaN',
    );
    expect(await answerTo(text)).toMatchObject({ result: { tool_result: { said: null } } });
  });

  test("nested too deep or with too many values is refused", { tags: "promise-R6" }, async () => {
    const deep = JSON.stringify(valid()).replace(
      '"task_id"',
      `"args":{"a":${"[".repeat(150)}${"]".repeat(150)}},"task_id"`,
    );
    expect(await answerTo(deep)).toMatchObject({
      error: { code: "INVALID_REQUEST", message: expect.stringMatching(/deeper/) },
    });
    const many = JSON.stringify(valid({}, { args: { a: Array(400_000).fill(0) } }));
    expect(await answerTo(many)).toMatchObject({
      error: { code: "INVALID_REQUEST", message: expect.stringMatching(/values/) },
    });
  });

  test("of more than 10,000,000 bytes is RESOURCE_EXHAUSTED with both sizes", async () => {
    const large = JSON.stringify(valid({}, { args: { message: "x".repeat(10_000_000) } }));
    expect(await answerTo(large)).toMatchObject({
      error: {
        code: "RESOURCE_EXHAUSTED",
        message: expect.stringMatching(/10000\d\d\d bytes; at most 10000000/),
      },
    });
  });

  test(
    "just below that size is run, and the event loop goes on turning meanwhile",
    { tags: ["full", "promise-O3"] },
    async () => {
      const message = "x".repeat(4_900_000);
      let turns = 0;
      const count = setInterval(() => turns++, 1);
      const answer = await answerTo(JSON.stringify(valid({}, { args: { message } })));
      clearInterval(count);
      expect(answer.result?.tool_result.said).toHaveLength(message.length);
      expect(turns).toBeGreaterThan(5);
    },
  );

  test(
    "without a reply topic, or with one that would reach many, is dropped and the next one is served",
    { tags: "promise-R2" },
    async () => {
      const signal = AbortSignal.timeout(30_000);
      const topic = invokeTopic(namespace, "well");
      for (const properties of [{}, { replyTo: "" }, { replyTo: "rig/>" }, { replyTo: "a/*/b" }]) {
        await client.publish(topic, Buffer.from(JSON.stringify(valid())), properties, signal);
      }
      expect(await answerTo(JSON.stringify(valid()))).toHaveProperty("result");
      expect(rig.logLines.filter((line) => line.includes("without a usable replyTo"))).toHaveLength(
        4,
      );
    },
  );

  test("never names a path by an id of the caller", { tags: "promise-R1" }, async () => {
    const answer = await answerTo(
      JSON.stringify(
        valid(
          { id: "../../x" },
          { task_id: "../../../tmp/evil", user_id: "../..", session_id: "/" },
        ),
      ),
    );
    expect(answer).toMatchObject({ id: "../../x", result: { tool_result: { said: "hi" } } });
  });

  test("keeps arguments and configuration out of the log", { tags: "promise-R7" }, async () => {
    await answerTo(
      JSON.stringify(
        valid({}, { args: { message: "argument-value" }, tool_config: { key: "config-value" } }),
      ),
    );
    const log = rig.logLines.join("\n");
    expect(log).not.toContain("argument-value");
    expect(log).not.toContain("config-value");
  });
});
