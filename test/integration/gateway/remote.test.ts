/**
 * Tools that call tools of other workers: two workers on a DevBroker, in real sandboxes.
 */
import { describe, expect, test, vi } from "vitest";
import type { CallResult } from "../../../harness/agent.ts";
import { openDevBroker } from "../../../harness/client/broker-choice.ts";
import { encodeRequest } from "../../../harness/messages.ts";
import { type DevBroker, startDevBroker } from "../../../harness/dev-broker/dev-broker.ts";
import type { BrokerSession, HeardMessage } from "../../../worker/broker/broker.ts";
import {
  cancelTopic,
  discoveryTopic,
  invokeTopic,
  responseTopic,
} from "../../../worker/protocol/topics.ts";
import { patience } from "../../support/patience.ts";
import {
  type Rig,
  type RigOptions,
  type RigTool,
  namespace,
  startRig,
} from "../../support/workers/rig.ts";
import { askingTool } from "../../support/gateway/asking-tool.ts";

const python = `
${askingTool}

async def digs(ctx, level, to):
    try:
        below = await ctx.tools.call(to[0], {"level": level + 1, "to": [to[1], to[0]]})
    except Exception as error:
        return {"level": level, "code": error.code}
    return dict(below)


def adds(a, b):
    return {"sum": a + b}


def saves(ctx):
    ctx.save_artifact("saved.txt", b"saved")
    return {}


def reads(ctx, name):
    return {"text": ctx.load_artifact(name).decode()}


def sleeps(seconds):
    import time
    time.sleep(seconds)
    return {}


async def finds(ctx, query):
    found = await ctx.tools.search(query)
    return {"found": [await ctx.tools.describe(each["id"], level="full") for each in found]}


async def drops(ctx, tool):
    import asyncio
    try:
        await asyncio.wait_for(ctx.tools.call(tool, {}), 0.5)
    except asyncio.TimeoutError:
        return {"dropped": True}
`;

const files = { "calls.py": python };

/** The result of a call that succeeded. */
function resultOf(answer: CallResult): Record<string, unknown> {
  if (answer.kind !== "success") throw new Error(JSON.stringify(answer));
  return answer.toolResult;
}

/** The facts of a call about its execution. */
function executionOf(answer: CallResult): Record<string, unknown> {
  if (answer.kind !== "success") throw new Error(answer.kind);
  const { result } = answer.response as { result: { execution: Record<string, unknown> } };
  return result.execution;
}

/** A tool that agents and programs may call. */
function programmatic(name: string): RigTool {
  return { module: "calls", function: name, allowed_callers: ["direct", "programmatic"] };
}

/** Two workers on one broker; the second one disposes first. */
async function startPair(
  one: RigOptions["tools"],
  other: RigOptions["tools"],
  environment: Readonly<Record<string, string>> = {},
): Promise<{ readonly one: Rig; readonly other: Rig } & AsyncDisposable> {
  await using stack = new AsyncDisposableStack();
  const first = stack.use(await startRig({ tools: one, files, environment }));
  const { broker } = first;
  const second = stack.use(await startRig({ tools: other, files, environment, broker }));
  const all = stack.move();
  return { one: first, other: second, [Symbol.asyncDispose]: () => all.disposeAsync() };
}

/** An agent or a worker of another make, on the broker of a rig. */
class Peer implements AsyncDisposable {
  readonly #session: BrokerSession;

  constructor(session: BrokerSession) {
    this.#session = session;
  }

  static async on({ host, port }: DevBroker): Promise<Peer> {
    const broker = await openDevBroker({ host, port }, { namespace, name: "peer" });
    return new Peer(await broker.connect([], signal()));
  }

  /** The messages of a pattern from now on. */
  async hears(pattern: string): Promise<AsyncIterator<HeardMessage, void>> {
    return (await this.#session.subscribe(pattern, signal()))[Symbol.asyncIterator]();
  }

  async says(topic: string, message: object, properties = {}): Promise<void> {
    const payload = Buffer.from(JSON.stringify({ jsonrpc: "2.0", ...message }));
    await this.#session.publish({ topic, payload, properties }, signal());
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#session[Symbol.asyncDispose]();
  }
}

function signal(): AbortSignal {
  return AbortSignal.timeout(20_000);
}

async function next(heard: AsyncIterator<HeardMessage, void>): Promise<HeardMessage> {
  const { value } = await heard.next();
  if (value === undefined) throw new Error("the session has ended");
  return value;
}

function read(payload: Uint8Array): Record<string, unknown> {
  return JSON.parse(Buffer.from(payload).toString()) as Record<string, unknown>;
}

function answering(tool_result: object): object {
  return { id: "1", result: { tool_result, execution_time_ms: 1 } };
}

/** A rig whose tools call `weather`, and the worker of that, which the test plays. */
async function startWithPeer(more: Partial<RigOptions["tools"]> = {}) {
  await using stack = new AsyncDisposableStack();
  const gateway = { remote: ["weather"] };
  const tools = {
    asks: { module: "calls", function: "asks", gateway },
    drops: { module: "calls", function: "drops", gateway },
    ...more,
  };
  const rig = stack.use(await startRig({ tools, files }));
  const peer = stack.use(await Peer.on(rig.broker));
  const calls = await peer.hears(invokeTopic(namespace, "weather"));
  const cancels = await peer.hears(cancelTopic(namespace, ">"));
  const all = stack.move();
  return { rig, peer, calls, cancels, [Symbol.asyncDispose]: () => all.disposeAsync() };
}

describe("two workers", () => {
  test("call each other to the bound of depth, with one slot each", async () => {
    const digs = programmatic("digs");
    await using pair = await startPair(
      { ping: { ...digs, gateway: { remote: ["pong"] } } },
      { pong: { ...digs, gateway: { remote: ["ping"] } } },
      { SANDBOX_MAX_CONCURRENT: "1", SANDBOX_MAX_SUSPENDED: "8" },
    );
    const calls = [
      pair.one.call("ping", { level: 0, to: ["pong", "ping"] }),
      pair.other.call("pong", { level: 0, to: ["ping", "pong"] }),
    ];
    for (const answer of await Promise.all(calls))
      expect(resultOf(answer)).toEqual({ level: 3, code: "LIMIT_REACHED" });
  });

  test(
    "find, describe and call each other's tools as far as both sides allow",
    { tags: ["promise-G1", "full"] },
    async () => {
      await using pair = await startPair(
        {
          asks: { module: "calls", function: "asks", gateway: { remote: ["adds", "saves"] } },
          finds: { module: "calls", function: "finds", gateway: { remote: ["adds", "private"] } },
          narrow: {
            module: "calls",
            function: "asks",
            gateway: { tools: ["adds"], remote: ["private", "hidden"] },
          },
        },
        {
          adds: { ...programmatic("adds"), description: "Adds prices", validate: false },
          saves: programmatic("saves"),
          private: { module: "calls", function: "adds", description: "Prices, too" },
          hidden: { ...programmatic("adds"), allowed_callers: ["programmatic"] },
        },
      );
      const { one } = pair;
      const found = async () => resultOf(await one.call("finds", { query: "prices" }));
      const description = {
        id: "adds",
        namespace: "",
        summary: "Adds prices",
        notes: "Adds prices",
      };
      // One that allows no programs is not found.
      await vi.waitFor(
        async () =>
          expect(await found()).toEqual({
            found: [{ ...description, name: "adds", examples: [] }],
          }),
        patience,
      );
      const sum = await one.call("asks", { tool: "adds", args: { a: 1, b: 2 } });
      expect(resultOf(sum)).toEqual({ result: { sum: 3 }, artifacts: [] });
      expect(executionOf(sum)).toMatchObject({
        tool_calls: [{ tool: "adds", backend: "remote", outcome: "ok", depth: 1 }],
      });
      const saved = await one.call("asks", { tool: "saves" });
      expect(resultOf(saved)).toEqual({ result: {}, artifacts: ["saved.txt"] });
      // In `tools` a name is one of the own manifest.
      for (const tool of ["private", "adds", "nowhere"])
        expect(resultOf(await one.call("narrow", { tool }))).toMatchObject({ code: "NOT_ALLOWED" });
      // It is not announced, and its worker takes no calls from others.
      expect(resultOf(await one.call("narrow", { tool: "hidden" }))).toMatchObject({
        code: "INVALID_REQUEST",
        message: "Tool 'hidden' may not be called by agents",
      });
      const request = { gateway: { tools: ["saves"] } };
      expect(resultOf(await one.call("asks", { tool: "adds" }, request))).toMatchObject({
        code: "NOT_ALLOWED",
      });
    },
  );

  test("end a call when the called one shuts down", { tags: "full" }, async () => {
    await using pair = await startPair(
      { asks: { module: "calls", function: "asks", gateway: { remote: ["sleeps"] } } },
      { sleeps: programmatic("sleeps") },
    );
    const answer = pair.one.call("asks", { tool: "sleeps", args: { seconds: 60 } });
    const hasStarted = (): boolean =>
      pair.other.logLines.some((line) => line.includes('"tool.started"'));
    await vi.waitFor(() => expect(hasStarted()).toBe(true), patience);
    await pair.other.worker[Symbol.asyncDispose]();
    expect(resultOf(await answer)).toMatchObject({ code: "SANDBOX_FAILED", retryable: false });
  });
});

describe("a call of a tool of another worker", () => {
  test("acts for the user of the outer call, with its token", { tags: "promise-G8" }, async () => {
    await using place = await startWithPeer();
    const { rig, peer, calls } = place;
    const answers = await peer.hears(responseTopic(namespace, "agent", ">"));
    const call = { tool: "asks", args: { tool: "weather", args: { user_id: "other" } } };
    const who = { userId: "user-42", sessionId: "web-1", profile: "restrictive" };
    const request = encodeRequest("1", "ReportAgent", { ...call, ...who });
    const properties = {
      replyTo: responseTopic(namespace, "agent", "1"),
      authToken: "a-token",
      callDepth: 1,
    };
    await peer.says(invokeTopic(namespace, "asks"), read(request), properties);
    const heard = await next(calls);
    expect(heard.properties).toMatchObject({
      userId: "user-42",
      authToken: "a-token",
      callDepth: "2",
      callerKind: "programmatic",
    });
    const { params, id } = read(heard.payload) as { id: string; params: object };
    expect(params).toMatchObject({
      task_id: id,
      tool_name: "weather",
      args: { user_id: "other" },
      app_name: "ReportAgent",
      user_id: "user-42",
      session_id: "web-1",
      tool_config: {},
      sandbox_profile: "restrictive",
      timeout_seconds: 298,
    });
    await peer.says(heard.properties["replyTo"] ?? "", answering({ sunny: true }));
    expect(read((await next(answers)).payload)).toMatchObject({
      result: { tool_result: { result: { sunny: true } } },
    });
    expect(rig.logLines.join("")).not.toContain("a-token");
  });

  test(
    "is refused by a worker whose entry allows no programs, whatever its caller remembers",
    { tags: ["promise-G1"] },
    async () => {
      await using rig = await startRig({
        tools: { adds: { module: "calls", function: "adds" } },
        files,
      });
      await using peer = await Peer.on(rig.broker);
      const answers = await peer.hears(responseTopic(namespace, "peer", ">"));
      const call = { tool: "adds", args: { a: 1, b: 2 }, userId: "user-42", sessionId: "web-1" };
      const request = read(encodeRequest("1", "Peer", call));
      const topic = invokeTopic(namespace, "adds");
      await peer.says(topic, request, {
        replyTo: responseTopic(namespace, "peer", "1"),
        callerKind: "programmatic",
      });
      const message = "Tool 'adds' may not be called by other tools";
      expect(read((await next(answers)).payload)).toMatchObject({
        error: { code: "INVALID_REQUEST", message },
      });
      await peer.says(topic, request, { replyTo: responseTopic(namespace, "peer", "2") });
      expect(read((await next(answers)).payload)).toMatchObject({ result: {} });
    },
  );

  test("takes the first answer to it, and no other", { tags: "promise-G8" }, async () => {
    await using place = await startWithPeer();
    const { rig, peer, calls } = place;
    const answer = rig.call("asks", { tool: "weather" });
    const replyTo = (await next(calls)).properties["replyTo"] ?? "";
    const guessed = replyTo.replace(/[^/]+$/, "00000000-0000-4000-8000-000000000000");
    await peer.says(guessed, answering({ forged: true }));
    await peer.says(replyTo, answering({ sunny: true }));
    await peer.says(replyTo, answering({ late: true }));
    expect(resultOf(await answer)).toMatchObject({ result: { sunny: true } });
    const ignored = (): number =>
      rig.logLines.filter((line) => line.includes("remote_tools.answer_ignored")).length;
    await vi.waitFor(() => expect(ignored()).toBe(2), patience);
  });

  test("fails with the code of the answer, or by what is no answer", { tags: "full" }, async () => {
    await using place = await startWithPeer();
    const { rig, peer, calls } = place;
    const error = (code: string) => ({ id: "1", error: { code, message: "no" } });
    const timedOut = { tool_result: {}, execution_time_ms: 1, timed_out: true };
    for (const [answer, failure] of [
      [error("TOOL_NOT_AVAILABLE"), { code: "TOOL_NOT_AVAILABLE", retryable: true }],
      [error("TOOL_ERROR"), { code: "TOOL_ERROR", retryable: false, message: "no" }],
      [error("INIT_ERROR"), { code: "EXECUTION_ERROR", retryable: false }],
      [
        { id: "1", result: timedOut },
        { code: "SANDBOX_TIMEOUT", retryable: false },
      ],
      [{ id: "1", result: { tool_result: [] } }, { code: "EXECUTION_ERROR" }],
    ] as const) {
      const called = rig.call("asks", { tool: "weather" });
      await peer.says((await next(calls)).properties["replyTo"] ?? "", answer);
      expect(resultOf(await called)).toMatchObject(failure);
      expect(executionOf(await called)).toMatchObject({ tool_calls: [{ backend: "remote" }] });
    }
  });

  test("ends without an answer before the outer one, and is cancelled", async () => {
    await using place = await startWithPeer();
    const { rig, calls, cancels } = place;
    const answer = rig.call("asks", { tool: "weather" }, { timeoutSeconds: 2 });
    const { properties } = await next(calls);
    const cancel = await next(cancels);
    expect(cancel.properties["replyTo"]).toBe(properties["replyTo"]);
    expect(cancel.topic).toBe(
      cancelTopic(namespace, properties["replyTo"]?.split("/").at(-1) ?? ""),
    );
    expect(resultOf(await answer)).toMatchObject({ code: "SANDBOX_TIMEOUT", retryable: false });
  });

  test("is cancelled when the program no longer waits", { tags: "full" }, async () => {
    await using place = await startWithPeer();
    const { rig, calls, cancels } = place;
    const answer = rig.call("drops", { tool: "weather" });
    const { properties } = await next(calls);
    expect((await next(cancels)).properties).toMatchObject({
      replyTo: properties["replyTo"],
      clientId: properties["clientId"],
    });
    expect(resultOf(await answer)).toEqual({ dropped: true });
  });

  test("ends with the connection to the broker", { tags: "full" }, async () => {
    await using place = await startWithPeer();
    const { rig, calls } = place;
    void rig.call("asks", { tool: "weather" }).catch(() => undefined);
    await next(calls);
    await rig.broker[Symbol.asyncDispose]();
    const ended = () => rig.logLines.find((line) => line.includes('"tool_call.ended"')) ?? "{}";
    await vi.waitFor(
      () => expect(JSON.parse(ended())).toMatchObject({ outcome: "SANDBOX_FAILED" }),
      patience,
    );
    // Its answer cannot be published any more.
    rig.worker.shutdownNow();
  });

  test(
    "is described by the answer of a worker that broadcast before",
    { tags: "full" },
    async () => {
      const finds = { module: "calls", function: "finds", gateway: { remote: ["weather"] } };
      await using stack = new AsyncDisposableStack();
      const broker = stack.use(await startDevBroker());
      const peer = stack.use(await Peer.on(broker));
      const requests = await peer.hears(discoveryTopic(namespace, "init_request", ">"));
      const rig = stack.use(await startRig({ tools: { finds }, files, broker }));
      const { topic, properties } = await next(requests);
      expect(topic).toBe(discoveryTopic(namespace, "init_request", "weather"));
      const result = {
        tool_name: "weather",
        description: "Says \u202ehow it is outside",
        parameters: { type: "OBJECT", properties: { city: { type: "STRING" } } },
      };
      await peer.says(properties["replyTo"] ?? "", { id: "1", result });
      await vi.waitFor(
        async () =>
          expect(resultOf(await rig.call("finds", { query: "outside" }))).toMatchObject({
            found: [
              {
                summary: "Says how it is outside",
                parameters: { type: "object", properties: { city: { type: "string" } } },
              },
            ],
          }),
        patience,
      );
      await peer.says(discoveryTopic(namespace, "removed", "weather"), {
        method: "sam_remote_tool/removed",
        params: { tool_name: "weather" },
      });
      await vi.waitFor(
        async () =>
          expect(resultOf(await rig.call("finds", { query: "" }))).toMatchObject({
            found: [{ id: "weather", summary: "" }],
          }),
        patience,
      );
    },
  );
});
