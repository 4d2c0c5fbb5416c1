/**
 * Peers that do not keep to the protocol, or send and leave more than they may.
 */
import { once } from "node:events";
import type { AddressInfo, Socket } from "node:net";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { WebSocket, WebSocketServer } from "ws";
import { createFunctionGateway } from "../../../../worker/gateway/functions.ts";
import { RuntimeError } from "../../../../worker/runtime/api/errors.ts";
import {
  maxAnswerBytes,
  maxChunkBytes,
  maxRequestBytes,
  windowBytes,
} from "../../../../worker/runtime/service/limits.ts";
import { subprotocol } from "../../../../worker/runtime/service/messages.ts";
import { openRemote } from "../../../../worker/runtime/service/remote.ts";
import type { ServeOptions } from "../../../../worker/runtime/service/options.ts";
import { serveRuntime } from "../../../../worker/runtime/service/server.ts";
import { SuiteTools } from "../../../conformance/gateway/suite-tools.ts";
import { patience } from "../../../support/patience.ts";
import { type Step, codeOf, scriptedBackend } from "../../../support/runtime/scripted-backend.ts";

async function serve(options: Partial<ServeOptions> = {}) {
  const seen = { running: 0, most: 0, started: 0, aborted: 0 };
  const backend = scriptedBackend((event) => {
    if (event === "started") seen.most = Math.max(seen.most, ++seen.running);
    if (event === "started") seen.started++;
    if (event === "aborted") seen.aborted++;
    if (event === "ended") seen.running--;
  });
  const service = await serveRuntime({ backend, port: 0, ...options });
  onTestFinished(() => service[Symbol.asyncDispose]());
  return { url: `ws://127.0.0.1:${service.port}`, seen };
}

async function rawCaller(url: string): Promise<WebSocket> {
  const socket = new WebSocket(url, subprotocol);
  socket.on("error", () => undefined);
  await once(socket, "open");
  onTestFinished(() => socket.terminate());
  return socket;
}

const executing = (...steps: readonly Step[]) => ({
  ...{ type: "execute", code: codeOf(...steps), language: "steps", timeoutMs: 60_000 },
  ...{ limits: {}, metadata: {} },
});

const gatewayOf = (tools = new SuiteTools()) => createFunctionGateway(tools.list);

async function failureOf(execution: Promise<unknown>): Promise<RuntimeError> {
  const error: unknown = await execution.catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(RuntimeError);
  return error as RuntimeError;
}

describe("a caller is refused for", { tags: "promise-L2" }, () => {
  const text = (message: object): string => JSON.stringify(message);
  test.each<readonly [string, number, string | Buffer]>([
    ["a request that is too large", 1009, "x".repeat(maxRequestBytes + 1)],
    ["what is not JSON", 1008, "{]"],
    ["what is nested too deeply", 1008, "[".repeat(200)],
    ["an unknown message", 1008, text({ type: "toString" })],
    ["an answer", 1008, text({ type: "error" })],
    ["another member", 1008, text({ ...executing(["wait"]), user: "root" })],
    ["another limit", 1008, text({ ...executing(["wait"]), limits: { user: 1 } })],
    ["a negative limit", 1008, text({ ...executing(["wait"]), limits: { pidsMax: -1 } })],
    ["another profile", 1008, text({ ...executing(["wait"]), profile: "root" })],
    ["no code", 1008, text({ ...executing(), code: "" })],
    ["an abort of nothing", 1008, text({ type: "abort" })],
    ["bytes that it was never sent", 1008, text({ type: "taken", bytes: 1 })],
    ["a large chunk", 1008, Buffer.alloc(maxChunkBytes + 1)],
  ])("%s", async (_, code, message) => {
    const { url, seen } = await serve();
    const caller = await rawCaller(url);
    const closed = once(caller, "close");
    caller.send(message);
    const [closedBy, reason] = (await closed) as [number, Buffer];
    expect(closedBy).toBe(code);
    expect(reason.toString()).not.toContain("root");
    expect(seen.started).toBe(0);
  });

  test.each<readonly [string, () => string | Buffer, number]>([
    ["a second request", () => text(executing(["wait"])), 1],
    ["a flood of requests", () => text({ type: "describe" }), 1_000],
    ["an endless frame", () => Buffer.alloc(maxChunkBytes, "x"), 600],
    ["a flood of frames that are none", () => Buffer.from("x\n"), windowBytes / 200],
  ])("%s, which ends its execution", async (_, message, count) => {
    const { url, seen } = await serve();
    const caller = await rawCaller(url);
    caller.send(text(executing(["wait"])));
    await vi.waitFor(() => expect(seen.running).toBe(1), patience);
    const closed = once(caller, "close");
    for (let sent = 0; sent < count; sent++) caller.send(message());
    expect(await closed).toMatchObject([1008, expect.any(Buffer)]);
    await vi.waitFor(() => expect(seen).toMatchObject({ running: 0, aborted: 1 }), patience);
  });
});

describe("a service", { tags: "promise-L2" }, () => {
  test("has no more executions at once than it may, and serves all", async () => {
    const { url, seen } = await serve({ maxExecutions: 3 });
    await using backend = await openRemote({ url });
    const executions = Array.from({ length: 20 }, (_, a) =>
      backend.execute({ code: codeOf(["call", "math:add", { a, b: 0 }]), gateway: gatewayOf() }),
    );
    const values = (await Promise.all(executions)).map(({ value }) => value);
    expect(values).toMatchObject(Array.from({ length: 20 }, (_, sum) => ({ structured: { sum } })));
    expect(seen.most).toBe(3);
  });

  test("never starts an execution that is aborted while it waits", async () => {
    const { url, seen } = await serve({ maxExecutions: 1 });
    await using backend = await openRemote({ url });
    const gateway = gatewayOf();
    const [first, second] = [new AbortController(), new AbortController()];
    const running = backend.execute({ code: codeOf(["wait"]), gateway }, first);
    await vi.waitFor(() => expect(seen.running).toBe(1), patience);
    const waiting = backend.execute({ code: codeOf(["wait"]), gateway }, second);
    second.abort(new Error("not wanted"));
    await expect(waiting).rejects.toThrow("not wanted");
    first.abort(new Error("not wanted"));
    await expect(running).rejects.toThrow("not wanted");
    await backend.execute({ code: codeOf(["value", 1]), gateway });
    expect(seen.started).toBe(2);
  });

  test("has its permit back from a caller that never reads its answer", async () => {
    const { url } = await serve({ maxExecutions: 1, pingIntervalMs: 100 });
    const caller = await rawCaller(url);
    (caller as unknown as { _socket: Socket })._socket.pause();
    caller.send(JSON.stringify(executing(["letters", maxAnswerBytes - 1_000])));
    await using backend = await openRemote({ url });
    const request = { code: codeOf(["value", 1]), gateway: gatewayOf() };
    expect((await backend.execute(request)).value).toBe(1);
  });

  test("sends a caller that takes nothing no more than the window", async () => {
    const { url } = await serve();
    const caller = await rawCaller(url);
    let sentBytes = 0;
    caller.on("message", (data: Buffer, isBinary) => (sentBytes += isBinary ? data.byteLength : 0));
    const calls = ["calls", 8, "any", { text: "x".repeat(300_000) }] as const;
    caller.send(JSON.stringify(executing(calls)));
    await vi.waitFor(() => expect(sentBytes).toBeGreaterThan(windowBytes * 0.9), patience);
    const described = openRemote({ url });
    await using _ = await described;
    expect(sentBytes).toBeLessThanOrEqual(windowBytes);
  });
});

describe("a far side is refused for", () => {
  /** A far side that describes itself, and answers an execution by these messages. */
  async function farSide(answers: readonly (string | Buffer)[], description: object = {}) {
    const server = new WebSocketServer({ port: 0, host: "127.0.0.1" });
    onTestFinished(() => void server.close());
    server.on("connection", (socket) =>
      socket
        .on("error", () => undefined)
        .on("message", (data: Buffer) => {
          const { type } = JSON.parse(data.toString()) as { type: string };
          const described = {
            ...{ type: "description", kind: "any", languages: ["steps"], readiness: "beta" },
            ...{ profiles: ["standard"], evidence: {}, ...description },
          };
          if (type === "describe") socket.send(JSON.stringify(described));
          if (type === "execute") for (const answer of answers) socket.send(answer);
        }),
    );
    await once(server, "listening");
    return `ws://127.0.0.1:${(server.address() as AddressInfo).port}`;
  }

  const result = {
    ...{ type: "result", value: 1, stdout: "", stderr: "", limitsEnforcedBy: {}, durationMs: 1 },
    backend: { kind: "any", readiness: "beta", details: {} },
  };
  const request = { code: codeOf(["wait"]), gateway: gatewayOf() };

  test("nothing when it answers", async () => {
    await using backend = await openRemote({ url: await farSide([JSON.stringify(result)]) });
    expect((await backend.execute(request)).value).toBe(1);
  });

  test.each<readonly [string, readonly (string | Buffer)[]]>([
    ["an answer that is too large", ["x".repeat(maxAnswerBytes + 1)]],
    ["what is not JSON", ["{]"]],
    ["a value that is nested too deeply", [JSON.stringify(result).replace("1", "[".repeat(200))]],
    ["another member", [JSON.stringify({ ...result, user: "root" })]],
    [
      "an unknown code",
      [JSON.stringify({ type: "error", code: "NO", op: "open", retryable: true })],
    ],
    ["an answer to another question", [JSON.stringify({ type: "describe" })]],
    ["frames that are none", [Buffer.from("x\n")]],
    ["a flood of its channel", Array.from({ length: 100 }, () => Buffer.alloc(maxChunkBytes, "x"))],
    ["a large chunk", [Buffer.alloc(maxChunkBytes + 1)]],
  ])("%s", async (_, answers) => {
    await using backend = await openRemote({ url: await farSide(answers) });
    const failure = await failureOf(backend.execute(request));
    expect(failure).toMatchObject({ code: "RUNTIME_UNAVAILABLE", retryable: false });
    expect(failure.message).not.toContain("root");
  });

  test.each([
    ["no language", { languages: [] }],
    ["an unknown enforcer", { evidence: { memory: "hope" } }],
    ["another member", { user: "root" }],
  ])("%s of its description", async (_, description) => {
    const failure = await failureOf(openRemote({ url: await farSide([], description) }));
    expect(failure).toMatchObject({ code: "RUNTIME_UNAVAILABLE", op: "open" });
  });
});
