/**
 * Tools that call other tools, in real sandboxes: both languages, each way to start.
 */
import { describe, expect, test } from "vitest";
import type { CallResult } from "../../../harness/agent.ts";
import type { JsonObject } from "../../../worker/support/json/json.ts";
import { type RigTool, nodeTool, startRig } from "../../support/workers/rig.ts";
import { askingTool } from "../../support/gateway/asking-tool.ts";

const python = `
import asyncio


def add(a, b):
    return {"sum": a + b}


def whoami(ctx):
    return {"user": ctx.user_id, "session": ctx.session_id}


def saves(ctx, count):
    ctx.save_artifact("saved.txt", b"x" * count)
    return {}


def configured(tool_config):
    return {"config": tool_config}


def sleeps(seconds):
    import time
    time.sleep(seconds)
    return {}


${askingTool}

async def asks_many(ctx, tool, count):
    results = await asyncio.gather(*(ctx.tools.call(tool, {"a": n, "b": 1}) for n in range(count)))
    return {"sums": [result["sum"] for result in results]}


async def finds(ctx, query):
    found = await ctx.tools.search(query)
    return {"ids": [each["id"] for each in found], "namespaces": await ctx.tools.namespaces()}


async def chains(ctx, steps):
    return {"last": dict(await ctx.tools.chain(steps))}


async def loads(ctx, count):
    saved = await ctx.tools.call("saves", {"count": count})
    name = saved.artifacts[0]["filename"]
    return {"count": (await ctx.tools.load_artifact(name)).count(b"x")}


async def gives_up(ctx):
    calls = [asyncio.ensure_future(ctx.tools.call("sleeps", {"seconds": 60})) for _ in range(2)]
    await asyncio.sleep(0)
    await ctx.tools.search("after both")
    for call in calls:
        call.cancel()
    await asyncio.wait(calls)
    return {"cancelled": [call.cancelled() for call in calls]}


def insists(ctx):
    refusals = 0
    while True:
        try:
            ctx.tools.sync.call("nowhere")
        except Exception:
            refusals += 1


def speaks(ctx, line):
    import socket
    with socket.socket(fileno=9) as channel:
        channel.sendall(line.encode() + b"\\n")
        return {"answer": channel.makefile().readline()}


def leaves(ctx):
    import socket
    channel = socket.socket(fileno=9)
    channel.sendall(b'{"type":"run_tool","id":"1","payload":{"id":"sleeps","args":{"seconds":60}}}\\n')
    # Answered after the call has started.
    channel.sendall(b'{"type":"list_namespaces","id":"2","payload":{}}\\n')
    channel.makefile().readline()
    return {}


async def digs(ctx, level):
    try:
        below = await ctx.tools.call("digs", {"level": level + 1})
    except Exception as error:
        return {"level": level, "code": error.code}
    return dict(below)
`;

const node = `
export const add = ({ a, b }) => ({ sum: a + b });
export const asks = async ({ tool, args = {} }, { tools }) => {
  try {
    const result = await tools.call(tool, args);
    return { result: { ...result }, artifacts: [] };
  } catch (error) {
    return { code: error.code, retryable: error.retryable, message: error.message };
  }
};
export const gives_up = async (args, { tools }) => {
  const controllers = [new AbortController(), new AbortController()];
  const calls = controllers.map(({ signal }) => tools.sleeps({ seconds: 60 }, { signal }));
  const ended = Promise.allSettled(calls);
  await tools.search("after both");
  for (const controller of controllers) controller.abort("enough");
  return { cancelled: (await ended).map(({ reason }) => reason === "enough") };
};
export const asks_many = async ({ tool, count }, { tools }) => {
  const calls = Array.from({ length: count }, (_, n) => tools.call(tool, { a: n, b: 1 }));
  return { sums: (await Promise.all(calls)).map(({ sum }) => sum) };
};
`;

const files = { "calls.py": python };
const nodeFiles = { "calls.js": node };

function inner(name: string, more: Partial<RigTool> = {}): RigTool {
  return { module: "calls", function: name, allowed_callers: ["direct", "programmatic"], ...more };
}

function outer(name: string, tools: readonly string[], more: Partial<RigTool> = {}): RigTool {
  return { module: "calls", function: name, gateway: { tools }, ...more };
}

/** May make one call at a time, and begins two. */
const oneAtATime = { tools: ["sleeps"], max_concurrent_calls: 1 };

/** The facts of a call about its execution. */
function executionOf(answer: CallResult): Record<string, unknown> {
  if (!("response" in answer)) throw new Error(answer.kind);
  const { result, error } = answer.response as Record<string, Record<string, unknown>>;
  const { execution } = (result ?? error?.["data"]) as { execution: Record<string, unknown> };
  return execution;
}

/** The result of a call that succeeded. */
function resultOf(answer: CallResult): Record<string, unknown> {
  if (answer.kind !== "success") throw new Error(JSON.stringify(answer));
  return answer.toolResult;
}

describe.each(["cold", "pool", "template"] as const)("a Python tool that starts by %s", (start) => {
  const tags = start === "template" ? [] : ["full"];

  test("calls another tool and gets its result", { tags }, async () => {
    await using rig = await startRig({
      tools: {
        add: inner("add", { namespace: "shop" }),
        asks: outer("asks", ["shop:*"], { start, warm: { min: 1 } }),
      },
      files,
      isWarm: true,
    });
    if (start !== "cold") await rig.untilWaiting("asks");
    const answer = await rig.call("asks", { tool: "shop:add", args: { a: 2, b: 3 } });
    expect(resultOf(answer)).toEqual({ result: { sum: 5 }, artifacts: [] });
    expect(executionOf(answer)).toMatchObject({
      start,
      tool_calls: [{ tool: "shop:add", outcome: "ok", depth: 1, backend: "bubblewrap" }],
    });
  });

  test("cancels a call that others wait for, and those", { tags: "full" }, async () => {
    const more = { gateway: oneAtATime, start, warm: { min: 1 } };
    await using rig = await startRig({
      tools: {
        sleeps: inner("sleeps"),
        gives_up: { module: "calls", function: "gives_up", ...more },
      },
      files,
      isWarm: true,
    });
    if (start !== "cold") await rig.untilWaiting("gives_up");
    const answer = await rig.call("gives_up", {}, { timeoutSeconds: 20 });
    expect(resultOf(answer)).toEqual({ cancelled: [true, true] });
    expect(executionOf(answer)).toMatchObject({ start, tool_calls: [{ outcome: "CANCELLED" }] });
  });
});

describe.each(["cold", "pool", "template"] as const)("a Node tool that starts by %s", (start) => {
  test("calls a Python tool, and several at once", { tags: "full" }, async () => {
    await using rig = await startRig({
      tools: {
        add: inner("add"),
        asks: nodeTool("calls.js", "asks", {
          gateway: { tools: ["add"] },
          start,
          warm: { min: 1 },
        }),
        asks_many: nodeTool("calls.js", "asks_many", { gateway: { tools: ["add"] } }),
      },
      files,
      nodeFiles,
      isWarm: true,
    });
    if (start !== "cold") await rig.untilWaiting("asks");
    const answer = await rig.call("asks", { tool: "add", args: { a: 2, b: 3 } });
    expect(resultOf(answer)).toMatchObject({ result: { sum: 5 } });
    const many = await rig.call("asks_many", { tool: "add", count: 5 });
    expect(resultOf(many)).toEqual({ sums: [1, 2, 3, 4, 5] });
  });

  test("cancels a call that others wait for, and those", { tags: "full" }, async () => {
    const more = { gateway: oneAtATime, start, warm: { min: 1 } };
    await using rig = await startRig({
      tools: { sleeps: inner("sleeps"), gives_up: nodeTool("calls.js", "gives_up", more) },
      files,
      nodeFiles,
      isWarm: true,
    });
    if (start !== "cold") await rig.untilWaiting("gives_up");
    const answer = await rig.call("gives_up", {}, { timeoutSeconds: 20 });
    expect(resultOf(answer)).toEqual({ cancelled: [true, true] });
    expect(executionOf(answer)).toMatchObject({ start, tool_calls: [{ outcome: "CANCELLED" }] });
  });
});

describe("a tool with a gateway", () => {
  test(
    "calls only what its entry lists, and what allows programs",
    { tags: "promise-G1" },
    async () => {
      await using rig = await startRig({
        tools: {
          add: inner("add"),
          private: { module: "calls", function: "add" },
          only_for_tools: inner("add", { allowed_callers: ["programmatic"] }),
          listed: outer("asks", ["add", "private"]),
          without: { module: "calls", function: "asks" },
        },
        files,
      });
      const args = { a: 1, b: 1 };
      const allowed = await rig.call("listed", { tool: "add", args });
      expect(resultOf(allowed)).toMatchObject({ result: { sum: 2 } });
      expect(await rig.call("only_for_tools", args)).toMatchObject({
        kind: "error",
        code: "INVALID_REQUEST",
        message: "Tool 'only_for_tools' may not be called by agents",
      });
      for (const tool of ["private", "listed", "nowhere"]) {
        const refused = resultOf(await rig.call("listed", { tool, args }));
        expect(refused).toMatchObject({ code: "NOT_ALLOWED", retryable: false });
      }
      expect(resultOf(await rig.call("without", { tool: "add", args }))).toMatchObject({
        code: "NOT_ALLOWED",
      });
    },
  );

  test(
    "acts for the user and session of its own call, and passes its artifacts on",
    { tags: "promise-G2" },
    async () => {
      await using rig = await startRig({
        tools: {
          whoami: inner("whoami"),
          saves: inner("saves"),
          asks: outer("asks", ["whoami"]),
          loads: outer("loads", ["saves"]),
        },
        files,
      });
      const { userId, sessionId } = rig.scope;
      expect(resultOf(await rig.call("asks", { tool: "whoami" }))).toMatchObject({
        result: { user: userId, session: sessionId },
      });
      const count = 1_300_000;
      expect(resultOf(await rig.call("loads", { count }))).toEqual({ count });
      expect(await rig.store.names(rig.scope, new AbortController().signal)).toEqual(["saved.txt"]);
    },
  );

  test(
    "has failed calls reported with their backend, and what failed",
    { tags: "full" },
    async () => {
      await using rig = await startRig({
        tools: {
          add: inner("add", { validate: false }),
          promises: inner("add", { output_schema: { type: "object", required: ["total"] } }),
          asks: outer("asks", ["add", "promises"]),
        },
        files,
      });
      const reported = async (tool: string, args: JsonObject) =>
        executionOf(await rig.call("asks", { tool, args }))["tool_calls"];
      const failed = { backend: "bubblewrap", outcome: "EXECUTION_ERROR" };
      expect(await reported("add", { a: 1, b: "x" })).toMatchObject([{ ...failed, op: "execute" }]);
      expect(await reported("promises", { a: 1, b: 2 })).toMatchObject([
        { ...failed, op: "validate_output" },
      ]);
    },
  );

  test("finds tools by words, and chains them", { tags: "full" }, async () => {
    await using rig = await startRig({
      tools: {
        add: inner("add", { namespace: "shop", description: "Adds prices", validate: false }),
        echo: inner("asks", { description: "Says it again" }),
        finds: outer("finds", ["shop:*", "echo"]),
        chains: outer("chains", ["shop:*"]),
      },
      files,
    });
    expect(resultOf(await rig.call("finds", { query: "prices" }))).toEqual({
      ids: ["shop:add"],
      namespaces: ["shop"],
    });
    const steps = [
      { tool: "shop:add", args: { a: 1, b: 2 } },
      { tool: "shop:add", args: { a: 3, b: 4 } },
    ];
    expect(resultOf(await rig.call("chains", { steps }))).toEqual({ last: { sum: 7 } });
  });

  test(
    "ends on one slot, also in calls of calls, whose depth is bounded",
    { tags: "promise-G4" },
    async () => {
      await using rig = await startRig({
        tools: {
          add: inner("add"),
          many: outer("asks_many", ["add"]),
          digs: inner("digs", { gateway: { tools: ["digs"], max_depth: 2 } }),
        },
        files,
        environment: { SANDBOX_MAX_CONCURRENT: "1" },
      });
      const programs = Array.from({ length: 3 }, () => rig.call("many", { tool: "add", count: 3 }));
      for (const answer of await Promise.all(programs)) {
        expect(resultOf(answer)).toEqual({ sums: [1, 2, 3] });
      }
      expect(resultOf(await rig.call("digs", { level: 0 }))).toEqual({
        level: 2,
        code: "LIMIT_REACHED",
      });
    },
  );

  test("ends its calls with its own", { tags: "full" }, async () => {
    await using rig = await startRig({
      tools: {
        sleeps: inner("sleeps"),
        asks: outer("asks", ["sleeps"]),
      },
      files,
    });
    const answer = await rig.call(
      "asks",
      { tool: "sleeps", args: { seconds: 60 } },
      { timeoutSeconds: 2 },
    );
    // The inner call ends a second earlier, so that the tool can answer.
    expect(resultOf(answer)).toMatchObject({ code: "SANDBOX_TIMEOUT" });
    const ended = rig.logLines.find((line) => line.includes('"tool_call.ended"'));
    expect(JSON.parse(ended!)).toMatchObject({ err: { message: expect.stringContaining("time") } });
  });

  test(
    "ends its calls with its own, also one that it does not wait for",
    { tags: "promise-G4" },
    async () => {
      await using rig = await startRig({
        tools: { sleeps: inner("sleeps"), leaves: outer("leaves", ["sleeps"]) },
        files,
      });
      const answer = await rig.call("leaves");
      expect(answer.kind).toBe("success");
      expect(executionOf(answer)).toMatchObject({
        tool_calls: [{ tool: "sleeps", outcome: "GATEWAY_CLOSED" }],
      });
      const ended = rig.logLines.filter((line) => line.includes('"tool_call.ended"'));
      expect(ended).toHaveLength(1);
    },
  );

  test(
    "is narrowed by the request, which can bring configurations for called tools",
    { tags: ["promise-G1", "promise-G3"] },
    async () => {
      const config = { type: "object", properties: { token: { type: "string" } } };
      await using rig = await startRig({
        tools: {
          add: inner("add"),
          configured: inner("configured", { config_schema: config }),
          asks: outer("asks", ["add", "configured"]),
        },
        files,
      });
      const call = { toolConfig: { outer: true } };
      const secret = { token: "a-secret" };
      const gateway = { tools: ["configured"], tool_configs: { configured: secret } };
      const answer = await rig.call("asks", { tool: "configured" }, { ...call, gateway });
      expect(resultOf(answer)).toEqual({ result: { config: secret }, artifacts: [] });
      const without = await rig.call("asks", { tool: "configured" }, call);
      expect(resultOf(without)).toEqual({ result: { config: {} }, artifacts: [] });
      const refused = await rig.call("asks", { tool: "add" }, { ...call, gateway });
      expect(resultOf(refused)).toMatchObject({ code: "NOT_ALLOWED" });
      const bounded = { gateway: { max_tool_calls: 0 } };
      expect(resultOf(await rig.call("asks", { tool: "add" }, bounded))).toMatchObject({
        code: "LIMIT_REACHED",
      });
      expect(rig.logLines.join("")).not.toContain(secret.token);
    },
  );

  test("ends when it goes on after 100 refusals", { tags: "promise-G4" }, async () => {
    await using rig = await startRig({ tools: { insists: outer("insists", ["add"]) }, files });
    const answer = await rig.call("insists");
    expect(answer).toMatchObject({ kind: "error", code: "EXECUTION_ERROR" });
    expect(answer).toHaveProperty("response.error.data.limit", "tool_calls");
    expect(executionOf(answer)["tool_calls"]).toHaveLength(100);
  });

  test("loses its channel by a message that there is not", { tags: "promise-G2" }, async () => {
    await using rig = await startRig({
      tools: { add: inner("add"), speaks: outer("speaks", ["add"]) },
      files,
    });
    const lines = [
      '{"type":"list_namespaces","id":"1","payload":{},"user_id":"other"}',
      '{"type":"run_tool","id":"1","payload":{"id":"add","args":{},"user_id":"other"}}',
      "hello",
      '{"type":"sudo","id":"1","payload":{}}',
    ];
    const answers = await Promise.all(lines.map((line) => rig.call("speaks", { line })));
    for (const answer of answers) {
      expect(resultOf(answer)).toEqual({ answer: "" });
      expect(executionOf(answer)).toMatchObject({ gateway: { closed: expect.any(String) } });
    }
  });
});
