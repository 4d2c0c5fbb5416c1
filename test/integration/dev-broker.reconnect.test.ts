/**
 * The worker's session over a DevBroker that comes and goes.
 */
import { describe, expect, test, vi } from "vitest";
import { type DevBroker, startDevBroker } from "../../harness/dev-broker/dev-broker.ts";
import type { BrokerConfig } from "../../worker/broker/open.ts";
import { openBroker } from "../../worker/broker/open.ts";
import type { ReconnectingBroker } from "../../worker/broker/reconnecting.ts";
import { invokeTopic } from "../../worker/protocol/topics.ts";
import { pull, textOf } from "../conformance/broker.ts";
import { PythonClient } from "../conformance/peers/dev-peer.ts";
import { type Reaction, startScriptedServer } from "./dev-broker-scripted.ts";
import { patience } from "../support/patience.ts";

const never = new AbortController().signal;
const namespace = "ns";
const echo = invokeTopic(namespace, "echo");
const message = (payload: string): { topic: string; payload: Buffer } => ({
  topic: "answers",
  payload: Buffer.from(payload),
});

/** A port that was free a moment ago. */
async function freePort(): Promise<number> {
  await using server = await startDevBroker();
  return server.port;
}

async function brokerAt(
  port: number,
  options: { connectRetries?: number; states?: boolean[] } = {},
): Promise<ReconnectingBroker> {
  const config: BrokerConfig = {
    kind: "dev",
    host: "127.0.0.1",
    port,
    connectRetries: options.connectRetries ?? 0,
    connectRetryDelayMs: 20,
  };
  return openBroker(config, {
    namespace,
    workerId: "worker",
    log: { info: () => {}, warn: () => {} },
    onStateChange: (connected) => options.states?.push(connected),
  });
}

/** What the server knows of subscriptions, all clients together. */
function patternsOf(server: DevBroker): readonly string[] {
  return server.subscriptions.flatMap((client) => client.patterns);
}

describe("a worker", () => {
  test("waits for a broker that starts later than itself", async () => {
    const port = await freePort();
    const broker = await brokerAt(port);
    const connecting = broker.connect(["echo"], never);
    await using server = await startDevBroker({ port });
    await using session = await connecting;
    expect(session.connected).toBe(true);
    expect(patternsOf(server)).toEqual([echo]);
  });

  test("stops waiting for a broker when told to", async () => {
    const broker = await brokerAt(await freePort());
    const controller = new AbortController();
    const reason = new Error("shutting down");
    const connecting = broker.connect([], controller.signal);
    controller.abort(reason);
    await expect(connecting).rejects.toBe(reason);
  });

  test("gives up on its first connection after the configured attempts", async () => {
    const broker = await brokerAt(await freePort(), { connectRetries: 3 });
    await expect(broker.connect([], never)).rejects.toMatchObject({ transient: true });
  });

  test("serves again after the broker was restarted, in the middle of a RECEIVE", async () => {
    const states: boolean[] = [];
    const former = await startDevBroker();
    const broker = await brokerAt(former.port, { states });
    await using session = await broker.connect(["echo"], never);
    const delivery = pull(session).next();
    await former[Symbol.asyncDispose]();
    await vi.waitFor(() => expect(session.connected).toBe(false), patience);
    await using server = await startDevBroker({ port: former.port });
    await server.whenSubscribed(echo, AbortSignal.timeout(30_000));
    await using agent = await PythonClient.connect(server.port);
    await agent.publish(echo, '"again"');
    expect(textOf(await delivery)).toBe('"again"');
    await vi.waitFor(() => expect(session.connected).toBe(true), patience);
    expect(states).toEqual([true, false, true]);
  });

  test("serves again after all connections were cut, many times over", async () => {
    const states: boolean[] = [];
    await using server = await startDevBroker();
    const broker = await brokerAt(server.port, { states });
    await using session = await broker.connect(["echo"], never);
    const deliveries = pull(session);
    for (let n = 0; n < 5; n++) {
      const delivery = deliveries.next();
      const before = states.length;
      server.dropConnections();
      await vi.waitFor(() => expect(states.slice(before)).toEqual([false, true]), patience);
      await using agent = await PythonClient.connect(server.port);
      await agent.publish(echo, `${n}`);
      expect(textOf(await delivery)).toBe(`${n}`);
    }
  });

  test("starts the next connection with what serve and leave said meanwhile", async () => {
    const former = await startDevBroker();
    const broker = await brokerAt(former.port);
    await using session = await broker.connect(["kept", "removed"], never);
    await former[Symbol.asyncDispose]();
    await vi.waitFor(() => expect(session.connected).toBe(false), patience);
    await session.leave("removed", never);
    await session.serve("added", never);
    await session.serve("fleeting", never);
    await session.leave("fleeting", never);
    await using server = await startDevBroker({ port: former.port });
    await server.whenSubscribed(invokeTopic(namespace, "added"), AbortSignal.timeout(30_000));
    expect(patternsOf(server)).toEqual([
      invokeTopic(namespace, "kept"),
      invokeTopic(namespace, "added"),
    ]);
  });

  test("starts the next connection with what was said as the connection broke", async () => {
    await using server = await startScriptedServer(({ cmd }) =>
      cmd === "SUBSCRIBE" || cmd === "UNSUBSCRIBE" ? "cut" : undefined,
    );
    const broker = await brokerAt(server.port);
    await using session = await broker.connect(["first"], never);
    await session.serve("second", never);
    await vi.waitFor(() => expect(session.connected).toBe(true), patience);
    await session.leave("first", never);
    await vi.waitFor(() => expect(session.connected).toBe(true), patience);
    const connects = server.heard.filter(({ cmd }) => cmd === "CONNECT");
    const [first, second] = [invokeTopic(namespace, "first"), invokeTopic(namespace, "second")];
    // The second connection of each session publishes only.
    expect(connects.map((command) => command["subscriptions"])).toEqual([
      [first],
      [],
      [first, second],
      [],
      [second],
      [],
    ]);
  });

  test("forgets a tool that the broker refuses to serve", async () => {
    const line = '{"status":"ERROR","error_code":"SUBSCRIBE_FAILED","error_message":"too many"}';
    await using server = await startScriptedServer(({ cmd }) =>
      cmd === "SUBSCRIBE" ? { line } : undefined,
    );
    const broker = await brokerAt(server.port);
    await using session = await broker.connect(["kept"], never);
    await expect(session.serve("refused", never)).rejects.toThrow("SUBSCRIBE_FAILED: too many");
    expect(session.connected).toBe(true);
    server.cut();
    const subscriptions = [invokeTopic(namespace, "kept")];
    await vi.waitFor(() => {
      const connects = server.heard.filter(({ cmd }) => cmd === "CONNECT");
      expect(connects[2]).toMatchObject({ subscriptions });
    }, patience);
  });

  test("keeps what it publishes while there is no broker, in order", async () => {
    const former = await startDevBroker();
    const broker = await brokerAt(former.port);
    await using session = await broker.connect([], never);
    await former[Symbol.asyncDispose]();
    await vi.waitFor(() => expect(session.connected).toBe(false), patience);
    const controller = new AbortController();
    const reason = new Error("not worth waiting");
    const numbers = Array.from({ length: 20 }, (_, index) => index);
    const publishing = numbers.map((n) => session.publish(message(`${n}`), never));
    const given = session.publish(message('"given up"'), controller.signal);
    controller.abort(reason);
    await expect(given).rejects.toBe(reason);
    const heard: unknown[] = [];
    await using server = await startScriptedServer(({ cmd, payload }) => {
      if (cmd === "PUBLISH") heard.push(payload);
      return undefined;
    }, former.port);
    await Promise.all(publishing);
    expect(server.port).toBe(former.port);
    expect(heard).toEqual(numbers);
  });

  test("publishes again what was on its way when the connection broke", async () => {
    const payloads: unknown[] = [];
    const reactions: (Reaction | undefined)[] = ["silent", "cut"];
    await using server = await startScriptedServer(({ cmd, payload }) => {
      if (cmd !== "PUBLISH") return undefined;
      payloads.push(payload);
      return reactions.shift();
    });
    const broker = await brokerAt(server.port);
    await using session = await broker.connect([], never);
    await Promise.all(["1", "2"].map((n) => session.publish(message(n), never)));
    expect(payloads).toEqual([1, 2, 1, 2]);
  });

  test("does not repeat what the broker refused", async () => {
    const refusal = '{"status":"ERROR","error_code":"INVALID_COMMAND","error_message":"no"}';
    await using server = await startScriptedServer(({ cmd }) =>
      cmd === "PUBLISH" ? { line: refusal } : undefined,
    );
    const broker = await brokerAt(server.port);
    await using session = await broker.connect([], never);
    await expect(session.publish(message("1"), never)).rejects.toThrow("INVALID_COMMAND: no");
    expect(server.heard.filter(({ cmd }) => cmd === "PUBLISH")).toHaveLength(1);
  });

  test("stays paused across connections, and leaves the calls to others", async () => {
    const former = await startDevBroker();
    const broker = await brokerAt(former.port);
    await using session = await broker.connect(["echo"], never);
    const pending = session.deliveries[Symbol.asyncIterator]().next();
    await session.pause();
    expect(await pending).toMatchObject({ done: true });
    await former[Symbol.asyncDispose]();
    await using server = await startScriptedServer(() => undefined, former.port);
    await session.publish(message("1"), never);
    const connects = server.heard.filter(({ cmd }) => cmd === "CONNECT");
    expect(connects.map((command) => command["subscriptions"])).toEqual([[], []]);
    expect(server.heard.some(({ cmd }) => cmd === "RECEIVE")).toBe(false);
  });

  test("hands out what came for a connection that was being made when it was paused", async () => {
    const call = `{"status": "OK", "message": {"message_id": "1", "topic": "${echo}", "payload": 7}}`;
    const publisherOfNext = 4;
    let connects = 0;
    let pausing: Promise<void> | undefined;
    let isHandedOut = false;
    await using server = await startScriptedServer(({ cmd }) => {
      if (cmd === "CONNECT" && ++connects === publisherOfNext) pausing = session.pause();
      if (cmd !== "RECEIVE" || connects < publisherOfNext || isHandedOut) return undefined;
      isHandedOut = true;
      return { line: call };
    });
    const broker = await brokerAt(server.port);
    await using session = await broker.connect(["echo"], never);
    const texts: string[] = [];
    const reading = (async () => {
      for await (const delivery of session.deliveries) texts.push(textOf(delivery));
    })();
    server.cut();
    await reading;
    await pausing;
    expect(texts).toEqual(["7"]);
    expect(server.heard.map(({ cmd }) => cmd)).toContain("UNSUBSCRIBE");
  });

  test("ends its deliveries when the connection breaks under a pause", async () => {
    await using server = await startScriptedServer(({ cmd }) =>
      cmd === "UNSUBSCRIBE" ? "cut" : undefined,
    );
    const broker = await brokerAt(server.port);
    await using session = await broker.connect(["echo"], never);
    const pending = session.deliveries[Symbol.asyncIterator]().next();
    await session.pause();
    expect(await pending).toEqual({ done: true, value: undefined });
    await session.publish(message("1"), never);
    const connects = server.heard.filter(({ cmd }) => cmd === "CONNECT");
    expect(connects.map((command) => command["subscriptions"])).toEqual([[echo], [], [], []]);
  });

  test("ends as lost after the configured attempts, and fails what it held", async () => {
    const states: boolean[] = [];
    const server = await startDevBroker();
    const broker = await brokerAt(server.port, { connectRetries: 3, states });
    await using session = await broker.connect(["echo"], never);
    const pending = session.deliveries[Symbol.asyncIterator]().next();
    await server[Symbol.asyncDispose]();
    const held = session.publish(message("1"), never);
    await expect(held).rejects.toThrow("The broker session has ended");
    expect(await session.closed).toMatchObject({
      reason: "lost",
      cause: { message: expect.stringContaining("ECONNREFUSED") as string },
    });
    expect(await pending).toEqual({ done: true, value: undefined });
    await expect(session.serve("more", never)).rejects.toThrow("The broker session has ended");
    expect(states).toEqual([true, false]);
  });

  test("goes on trying where another program has taken the broker's port, until the broker is back", async () => {
    const former = await startDevBroker();
    const broker = await brokerAt(former.port);
    await using session = await broker.connect([], never);
    await former[Symbol.asyncDispose]();
    {
      await using other = await startScriptedServer(() => ({ line: "?" }), former.port);
      await vi.waitFor(() => expect(other.heard.length).toBeGreaterThan(2), patience);
    }
    await using _back = await startDevBroker({ port: former.port });
    await vi.waitFor(() => expect(session.connected).toBe(true), patience);
  });

  test("can be disposed of while it looks for the broker", async () => {
    const server = await startDevBroker();
    const broker = await brokerAt(server.port);
    const session = await broker.connect(["echo"], never);
    const pending = session.deliveries[Symbol.asyncIterator]().next();
    await server[Symbol.asyncDispose]();
    await vi.waitFor(() => expect(session.connected).toBe(false), patience);
    const held = session.publish(message("1"), never);
    held.catch(() => {});
    await session[Symbol.asyncDispose]();
    expect(await session.closed).toEqual({ reason: "asked" });
    expect(await pending).toEqual({ done: true, value: undefined });
    await expect(held).rejects.toThrow("The broker session has ended");
  });
});
