/**
 * Subscriptions of the DevBroker adapter, each a connection of its own, against servers that
 * misbehave.
 */
import { once } from "node:events";
import { type AddressInfo, type Socket, createServer } from "node:net";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import type { Broker } from "../../worker/broker/broker.ts";
import { createDevBroker } from "../../worker/broker/dev/broker.ts";
import { hear, textOf } from "../conformance/broker.ts";
import { patience } from "../support/patience.ts";
import { type Reaction, type ScriptedCommand, startScriptedServer } from "./dev-broker-scripted.ts";

const never = new AbortController().signal;
const pattern = "ns/control/>";

function brokerAt(port: number, warnings: unknown[] = []): Broker {
  return createDevBroker({
    host: "127.0.0.1",
    port,
    namespace: "ns",
    workerId: "worker-7",
    log: { info: () => {}, warn: (facts) => warnings.push(facts) },
  });
}

/** Whether a command introduces the client of a subscription. */
function subscribes({ cmd, subscriptions }: ScriptedCommand): boolean {
  return cmd === "CONNECT" && Array.isArray(subscriptions) && subscriptions.includes(pattern);
}

function refusing(code: string): Reaction {
  return { line: JSON.stringify({ status: "ERROR", error_code: code, error_message: "sorry" }) };
}

describe("a subscription", () => {
  test("is a client of its own", async () => {
    await using server = await startScriptedServer(() => undefined);
    await using session = await brokerAt(server.port).connect(["echo"], never);
    await using _subscription = await session.subscribe(pattern, never);
    const clients = server.heard.filter(({ cmd }) => cmd === "CONNECT");
    expect(clients.map(({ subscriptions }) => subscriptions)).toEqual([
      ["ns/a2a/v1/sam_remote_tool/invoke/echo"],
      [],
      [pattern],
    ]);
    expect(new Set(clients.map((client) => client["client_id"])).size).toBe(3);
  });

  test.each([
    ["that is cut", "cut", "was lost"],
    ["that the broker has forgotten", refusing("NOT_CONNECTED"), "refused RECEIVE: NOT_CONNECTED"],
  ] as const)("%s ends its session as lost", async (_name, reaction, words) => {
    await using server = await startScriptedServer(({ cmd }) =>
      cmd === "RECEIVE" ? reaction : undefined,
    );
    await using session = await brokerAt(server.port).connect([], never);
    await using subscription = await session.subscribe(pattern, never);
    const pending = subscription[Symbol.asyncIterator]().next();
    const end = await session.closed;
    expect(end).toMatchObject({ reason: "lost", cause: { transient: true } });
    expect(String(end.cause)).toContain(words);
    expect(await pending).toEqual({ done: true, value: undefined });
    await vi.waitFor(() => expect(server.connections).toBe(0), patience);
  });

  test("that is cut while nobody pulls ends its session as lost", async () => {
    // One socket for each connection, in order of connecting; every command is answered with yes.
    const sockets: Socket[] = [];
    const server = createServer((socket) => {
      sockets.push(socket);
      socket.on("error", () => {}).on("data", () => socket.write('{"status": "OK"}\n'));
    });
    onTestFinished(() => void server.close());
    await once(server.listen(0, "127.0.0.1"), "listening");
    await using session = await brokerAt((server.address() as AddressInfo).port).connect([], never);
    await using _subscription = await session.subscribe(pattern, never);
    sockets.at(-1)?.destroy();
    expect(await session.closed).toMatchObject({ reason: "lost", cause: { transient: true } });
  });

  test("ends with a session that is lost, and leaves nothing open", async () => {
    await using server = await startScriptedServer(({ cmd }) =>
      cmd === "PUBLISH" ? refusing("NOT_CONNECTED") : undefined,
    );
    await using session = await brokerAt(server.port).connect([], never);
    await using subscription = await session.subscribe(pattern, never);
    const pending = subscription[Symbol.asyncIterator]().next();
    const message = { topic: "t", payload: Buffer.from("1") };
    await expect(session.publish(message, never)).rejects.toThrow("NOT_CONNECTED");
    expect(await pending).toEqual({ done: true, value: undefined });
    await vi.waitFor(() => expect(server.connections).toBe(0), patience);
  });

  test("that the broker refuses leaves nothing open, and the session as it was", async () => {
    await using server = await startScriptedServer((command) =>
      subscribes(command) ? refusing("INVALID_COMMAND") : undefined,
    );
    await using session = await brokerAt(server.port).connect([], never);
    await expect(session.subscribe(pattern, never)).rejects.toMatchObject({
      name: "BrokerError",
      message: "The broker refused CONNECT: INVALID_COMMAND: sorry",
      transient: false,
    });
    await vi.waitFor(() => expect(server.connections).toBe(2), patience);
    await session.publish({ topic: "t", payload: Buffer.from("1") }, never);
  });

  test("that is being made ends with its session, and leaves nothing open", async () => {
    await using server = await startScriptedServer((command) =>
      subscribes(command) ? "silent" : undefined,
    );
    await using session = await brokerAt(server.port).connect([], never);
    const refusal = expect(session.subscribe(pattern, never)).rejects.toThrow("session has ended");
    await vi.waitFor(() => expect(server.heard.some(subscribes)).toBe(true), patience);
    await session[Symbol.asyncDispose]();
    await refusal;
    await vi.waitFor(() => expect(server.connections).toBe(0), patience);
  });

  test("skips what it cannot read, and says so", async () => {
    const answers: Reaction[] = [
      { line: "certainly not JSON" },
      { line: '{"status": "OK", "message": {"topic": "ns/control/x", "payload": 1}}' },
    ];
    await using server = await startScriptedServer(({ cmd }) =>
      cmd === "RECEIVE" ? answers.shift() : undefined,
    );
    const warnings: unknown[] = [];
    await using session = await brokerAt(server.port, warnings).connect([], never);
    await using subscription = await session.subscribe(pattern, never);
    const heard = await hear(subscription).next();
    expect(heard).toMatchObject({ topic: "ns/control/x", properties: {} });
    expect(textOf(heard)).toBe("1");
    expect(warnings).toEqual([
      { event: "message.unreadable", reason: "the line is not a JSON object" },
    ]);
  });
});
