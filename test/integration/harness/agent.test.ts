/**
 * The agent's half of a call, over a real DevBroker.
 */
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { Agent } from "../../../harness/agent.ts";
import { type DevBroker, startDevBroker } from "../../../harness/dev-broker/dev-broker.ts";
import { type MemoryBroker, createMemoryBroker } from "../../fakes/memory-broker/broker.ts";
import { type Clock, systemClock } from "../../../worker/support/clock.ts";
import { DevClient } from "../../support/brokers/dev-client.ts";
import { patience } from "../../support/patience.ts";
import { serveTools } from "../../support/brokers/served-tools.ts";
import {
  type Request,
  type Script,
  type ScriptedWorker,
  startScriptedWorker,
} from "./scripted-worker.ts";

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

interface Scene {
  readonly broker: DevBroker;
  readonly agent: Agent;
  readonly worker: ScriptedWorker;
}

async function setScene(script: Script, clock: Clock = systemClock): Promise<Scene> {
  const stack = new AsyncDisposableStack();
  onTestFinished(() => stack.disposeAsync());
  const broker = stack.use(await startDevBroker());
  const pattern = "ns/a2a/v1/sam_remote_tool/invoke/>";
  const worker = stack.use(await startScriptedWorker(broker.port, pattern, script));
  const options = { host: broker.host, port: broker.port, namespace: "ns/", name: "AgentA", clock };
  const agent = stack.use(await Agent.connect(options, new AbortController().signal));
  return { broker, agent, worker };
}

/** A clock on which no wait up to `longestMs` takes long; it remembers the waits. */
function hastyClock(waits: number[], longestMs: number): Clock {
  return {
    ...systemClock,
    sleep: async (ms, signal) => {
      waits.push(ms);
      await systemClock.sleep(ms <= longestMs ? 20 : ms, signal);
    },
  };
}

describe("an agent", () => {
  test("publishes a request as real agents do", async () => {
    const { agent, worker } = await setScene((_request, reply) => reply.result({ ok: true }));
    const beforeMs = Date.now();
    const result = await agent.call({ tool: "echo_tool", args: { message: "hi €" }, userId: "u" });
    const [request] = worker.requests;
    const id = result.correlationId;
    expect(id).toMatch(uuid);
    expect(request).toStrictEqual({
      topic: "ns/a2a/v1/sam_remote_tool/invoke/echo_tool",
      id,
      params: {
        task_id: id,
        tool_name: "echo_tool",
        args: { message: "hi €" },
        tool_config: {},
        app_name: "AgentA",
        user_id: "u",
        session_id: "harness",
        preloaded_artifacts: {},
        artifact_references: {},
        timeout_seconds: 300,
        sandbox_profile: "standard",
      },
      properties: {
        replyTo: `ns/a2a/v1/sam_remote_tool/response/AgentA/${id}`,
        statusTo: `ns/a2a/v1/sam_remote_tool/status/AgentA/${id}`,
        clientId: "AgentA",
        userId: "u",
        timestamp: expect.any(Number) as number,
      },
    });
    const timestamp = Number(request?.properties["timestamp"]);
    expect(timestamp).toBeGreaterThanOrEqual(beforeMs);
    expect(timestamp).toBeLessThanOrEqual(Date.now());
  });

  test("hears the statuses of its own call, in order, before the result", async () => {
    const { agent } = await setScene(async (request, reply) => {
      await reply.status(`first of ${String(request.params["tool_name"])}`);
      await reply.status("second");
      await reply.result({ ok: true });
    });
    const heard: string[] = [];
    const result = await agent.call({ tool: "one" }, { onStatus: (text) => heard.push(text) });
    expect(heard).toEqual(["first of one", "second"]);
    expect(result).toMatchObject({ kind: "success", toolResult: { ok: true } });
    expect(result.roundTripMs).toBeGreaterThan(0);
  });

  test("keeps several calls apart that are answered in another order", async () => {
    const held: (() => Promise<void>)[] = [];
    const { agent } = await setScene(async (request, reply) => {
      const { number } = request.params["args"] as { number: number };
      held.push(async () => {
        await reply.status(`status ${number}`);
        await reply.result({ number });
      });
      if (held.length === 20) for (const answer of held.toReversed()) await answer();
    });
    const results = await Promise.all(
      Array.from({ length: 20 }, async (_, number) => {
        const heard: string[] = [];
        const result = await agent.call(
          { tool: "count", args: { number } },
          { onStatus: (text) => heard.push(text) },
        );
        return { number, heard, result };
      }),
    );
    for (const { number, heard, result } of results) {
      expect(heard).toEqual([`status ${number}`]);
      expect(result).toMatchObject({ kind: "success", toolResult: { number } });
    }
  });

  test("matches an answer by its topic, not by its id", async () => {
    const { agent } = await setScene((_request, reply) =>
      reply.send({
        jsonrpc: "2.0",
        id: "unknown",
        error: { code: "EXECUTION_ERROR", message: "x" },
      }),
    );
    const result = await agent.call({ tool: "any" });
    expect(result).toMatchObject({ kind: "error", code: "EXECUTION_ERROR", message: "x" });
  });

  test("counts the first of two answers", async () => {
    const { agent } = await setScene(async (_request, reply) => {
      await reply.result({ answer: 1 });
      await reply.result({ answer: 2 });
    });
    const first = await agent.call({ tool: "any" });
    const second = await agent.call({ tool: "any" });
    expect(first).toMatchObject({ toolResult: { answer: 1 } });
    expect(second).toMatchObject({ toolResult: { answer: 1 } });
    expect(second.correlationId).not.toBe(first.correlationId);
  });

  test("calls once more, after a second and under a new id, when the tool is not available", async () => {
    const waits: number[] = [];
    const { agent, worker } = await setScene(
      (_request, reply) =>
        worker.requests.length === 1
          ? reply.error("TOOL_NOT_AVAILABLE", "gone")
          : reply.result({ ok: true }),
      hastyClock(waits, 1_000),
    );
    expect(await agent.call({ tool: "any", timeoutSeconds: 30 })).toMatchObject({
      kind: "success",
    });
    expect(worker.requests).toHaveLength(2);
    expect(worker.requests[0]?.id).not.toBe(worker.requests[1]?.id);
    expect(waits).toContain(1_000);
  });

  test("does not call a third time", async () => {
    const { agent, worker } = await setScene(
      (_request, reply) => reply.error("TOOL_NOT_AVAILABLE", "gone"),
      hastyClock([], 1_000),
    );
    expect(await agent.call({ tool: "any" })).toMatchObject({ code: "TOOL_NOT_AVAILABLE" });
    expect(worker.requests).toHaveLength(2);
  });

  test("does not repeat a call that failed otherwise", async () => {
    const { agent, worker } = await setScene((_request, reply) =>
      reply.error("RESOURCE_EXHAUSTED", "busy"),
    );
    expect(await agent.call({ tool: "any" })).toMatchObject({ code: "RESOURCE_EXHAUSTED" });
    expect(worker.requests).toHaveLength(1);
  });

  test("waits ten seconds longer than the tool may take, and then says that nobody answered", async () => {
    const waits: number[] = [];
    const { agent } = await setScene(() => undefined, hastyClock(waits, 17_000));
    const result = await agent.call({ tool: "any", timeoutSeconds: 7 });
    expect(result).toMatchObject({ kind: "no-answer", waitedSeconds: 17 });
    expect(waits).toEqual([17_000]);
  });

  test("stops waiting when its caller does", async () => {
    const { agent } = await setScene(() => undefined);
    const stopping = new AbortController();
    const call = agent.call({ tool: "any" }, { signal: stopping.signal });
    stopping.abort(new Error("enough"));
    await expect(call).rejects.toThrow("enough");
  });

  test("cancels its call when it is told to, and waits for the answer", async () => {
    const isCancelled = Promise.withResolvers<void>();
    const { agent, broker, worker } = await setScene(async (_request, reply) => {
      await isCancelled.promise;
      await reply.error("CANCELLED", "as you wish");
    });
    const { signal } = new AbortController();
    const patterns = ["ns/a2a/v1/sam_remote_tool/cancel/>"];
    const address = { host: broker.host, port: broker.port };
    await using client = await DevClient.connect({ ...address, name: "raw", patterns }, signal);
    const cancel = new AbortController();
    const call = agent.call({ tool: "any", userId: "ann" }, { cancel: cancel.signal });
    await vi.waitFor(() => expect(worker.requests).toHaveLength(1), patience);
    cancel.abort();
    const { value: message } = await client.messages(signal).next();
    isCancelled.resolve();
    expect(await call).toMatchObject({ kind: "error", code: "CANCELLED" });
    const [{ id, properties } = { id: "", properties: {} }] = worker.requests;
    expect(message).toMatchObject({
      topic: `ns/a2a/v1/sam_remote_tool/cancel/${id}`,
      userProperties: { ...properties, timestamp: expect.any(Number) as number },
    });
    expect(JSON.parse(Buffer.from(message.payload).toString())).toEqual({
      jsonrpc: "2.0",
      method: "sam_remote_tool/cancel",
      params: { task_id: id },
    });
  });

  test("does not make a call again that it cancelled", async () => {
    const cancel = new AbortController();
    const { agent, worker } = await setScene((_request, reply) => {
      cancel.abort();
      return reply.error("TOOL_NOT_AVAILABLE", "no");
    });
    const result = await agent.call({ tool: "any" }, { cancel: cancel.signal });
    expect(result).toMatchObject({ code: "TOOL_NOT_AVAILABLE" });
    expect(worker.requests).toHaveLength(1);
  });

  test("waits on over the loss of a connection, and hears what is sent afterwards", async () => {
    const asked = Promise.withResolvers<Request>();
    const { agent, broker } = await setScene((request) => asked.resolve(request));
    const agents = () =>
      broker.subscriptions
        .filter(({ patterns }) => patterns.includes("ns/a2a/v1/sam_remote_tool/*/AgentA/>"))
        .map(({ clientId }) => clientId);
    const call = agent.call({ tool: "any" });
    const { id, properties } = await asked.promise;
    const before = agents();
    broker.dropConnections();
    await vi.waitFor(() => {
      expect(new Set(agents()).difference(new Set(before)).size).toBe(1);
    }, patience);

    const { host, port } = broker;
    const { signal } = new AbortController();
    await using worker = await DevClient.connect({ host, port, name: "w", patterns: [] }, signal);
    const result = { tool_result: { ok: true }, execution_time_ms: 1 };
    const answer = Buffer.from(JSON.stringify({ jsonrpc: "2.0", id, result }));
    await worker.publish(String(properties["replyTo"]), answer, {}, signal);
    expect(await call).toMatchObject({ kind: "success", toolResult: { ok: true } });
  });

  test("fails the calls on their way, and later ones, when the broker goes away", async () => {
    const { agent, broker } = await setScene(() => void broker[Symbol.asyncDispose]());
    for (const tool of ["first", "second"]) {
      await expect(agent.call({ tool })).rejects.toThrow(
        /^The connection to the broker was lost: Cannot connect .*REFUSED/,
      );
    }
  });

  test("fails the call whose statuses its caller cannot take, and no other", async () => {
    const { agent } = await setScene(async (_request, reply) => {
      await reply.status("a status");
      await reply.result({ ok: true });
    });
    const onStatus = (): never => {
      throw new Error("too much");
    };
    const calls = [agent.call({ tool: "a" }, { onStatus }), agent.call({ tool: "b" })];
    expect(await Promise.allSettled(calls)).toMatchObject([
      { status: "rejected", reason: { message: "too much" } },
      { status: "fulfilled", value: { kind: "success" } },
    ]);
  });

  test("refuses a request that no broker would carry, and names both sizes", async () => {
    const { agent, worker } = await setScene((_request, reply) => reply.result({}));
    const call = agent.call({ tool: "any", args: { text: "x".repeat(10_000_000) } });
    await expect(call).rejects.toThrow(/the request has 1000\d{4} bytes; at most 10000000/);
    expect(worker.requests).toHaveLength(0);
  });

  test("learns that a tool is served without making anybody run it", async () => {
    const { agent, worker } = await setScene((_request, reply) =>
      reply.error("INVALID_REQUEST", "Invalid request: params.task_id: missing"),
    );
    await agent.whenServed("any", new AbortController().signal);
    expect(worker.requests[0]?.params).toEqual({});
  });

  test("asks again while a worker says that it cannot serve the tool, and tells why", async () => {
    const message = "Tool 'any' is not available on this worker: it is not there";
    const { agent, worker } = await setScene((_request, reply) =>
      worker.requests.length < 3
        ? reply.error("TOOL_NOT_AVAILABLE", message)
        : reply.error("INVALID_REQUEST", "no"),
    );
    const told: string[] = [];
    await agent.whenServed("any", new AbortController().signal, (reason) => told.push(reason));
    expect(told).toEqual([message, message]);
  });

  test("asks for a worker again until one is there", async () => {
    const broker = await startDevBroker();
    onTestFinished(() => broker[Symbol.asyncDispose]());
    const { host, port } = broker;
    const { signal } = new AbortController();
    const waits: number[] = [];
    const clock = hastyClock(waits, 1_000);
    await using agent = await Agent.connect({ host, port, namespace: "ns", clock }, signal);
    const served = agent.whenServed("late", signal);
    await expect.poll(() => waits.length, patience).toBeGreaterThan(1);
    await using _worker = await startScriptedWorker(
      port,
      "ns/a2a/v1/sam_remote_tool/invoke/late",
      (_request, reply) => reply.error("INVALID_REQUEST", "no"),
    );
    await served;
  });
});

describe("an agent that waits for a worker at a broker that keeps messages", () => {
  const waiting = async () => {
    const broker = createMemoryBroker({ namespace: "ns" });
    const waits: number[] = [];
    const clock = hastyClock(waits, 16_000);
    const agent = await Agent.on(broker, { namespace: "ns", clock }, new AbortController().signal);
    onTestFinished(() => agent[Symbol.asyncDispose]());
    return { broker, waits, served: agent.whenServed("late", new AbortController().signal) };
  };
  const serve = (broker: MemoryBroker, asked: string[] = []) =>
    serveTools(broker, ["late"], (request) => {
      asked.push(request.id);
      return request.error("INVALID_REQUEST", "no");
    });

  test("asks again when only a listener had its question, more and more seldom", async () => {
    const { broker, waits, served } = await waiting();
    using _listener = broker.subscribe("ns/>");
    await expect.poll(() => waits.length, patience).toBeGreaterThan(7);
    await using _worker = await serve(broker);
    await served;
    expect(waits.slice(1, 8)).toEqual([1_000, 2_000, 4_000, 8_000, 16_000, 16_000, 16_000]);
  });

  test("asks as often as before while nobody is there at all", async () => {
    const { broker, waits, served } = await waiting();
    await expect.poll(() => waits.length, patience).toBeGreaterThan(3);
    await using _worker = await serve(broker);
    await served;
    expect(new Set(waits)).toEqual(new Set([1_000]));
  });

  test("has its questions found in the queue by a worker that comes later", async () => {
    const broker = createMemoryBroker({ namespace: "ns" });
    const { signal } = new AbortController();
    const former = await broker.connect(["late"], signal);
    await former[Symbol.asyncDispose]();
    const clock = { ...systemClock, sleep: () => new Promise<never>(() => undefined) };
    await using agent = await Agent.on(broker, { namespace: "ns", clock }, signal);
    const served = agent.whenServed("late", signal);
    const asked: string[] = [];
    await using _worker = await serve(broker, asked);
    await served;
    expect(asked).toHaveLength(1);
  });
});
