/**
 * The DevBroker adapter against peers that are not ours: Python's JSON, servers that misbehave,
 * processes that must end.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:net";
import { text } from "node:stream/consumers";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { startDevBroker } from "../../harness/dev-broker/dev-broker.ts";
import { createDevBroker } from "../../worker/broker/dev/broker.ts";
import { maxAnswerBytes, maxLineBytes } from "../../worker/broker/dev/wire.ts";
import type { Broker, Delivery } from "../../worker/broker/broker.ts";
import { invokeTopic } from "../../worker/protocol/topics.ts";
import { parseJson } from "../../worker/support/json/json.ts";
import { pull, textOf } from "../conformance/broker.ts";
import { PythonClient, pythonJson } from "../conformance/peers/dev-peer.ts";
import { type Reaction, ok, startScriptedServer } from "./dev-broker-scripted.ts";
import { patience } from "../support/patience.ts";

const never = new AbortController().signal;
const namespace = "ns";
const topic = invokeTopic(namespace, "echo");
const message = { topic: "t", payload: Buffer.from("1") };

function brokerAt(port: number, warnings: unknown[] = []): Broker {
  return createDevBroker({
    host: "127.0.0.1",
    port,
    namespace,
    workerId: "worker-7",
    log: { info: () => {}, warn: (facts) => warnings.push(facts) },
  });
}

/** A RECEIVE answer with a message. */
function delivering(payload: string, id: string, properties = "{}"): Reaction {
  return {
    line: `{"status": "OK", "message": {"message_id": "${id}", "topic": "${topic}", "payload": ${payload}, "user_properties": ${properties}}}`,
  };
}

describe("a message from Python", () => {
  test("with bare NaN arrives to the letter and decodes", async () => {
    await using server = await startDevBroker();
    await using session = await brokerAt(server.port).connect(["echo"], never);
    await using agent = await PythonClient.connect(server.port);
    await agent.publish(topic, pythonJson({ n: [NaN, -Infinity], text: "€😀" }), {
      x: NaN,
      y: [1],
    });
    const delivery = await pull(session).next();
    expect(textOf(delivery)).toBe(
      String.raw`{"n": [NaN, -Infinity], "text": "\u20ac\ud83d\ude00"}`,
    );
    expect(parseJson(delivery.payload)).toEqual({ n: [null, null], text: "€😀" });
    expect(delivery.properties).toEqual({ x: "null", y: "[1]" });
  });

  test("keeps integers that JavaScript cannot hold", async () => {
    await using server = await startDevBroker();
    await using session = await brokerAt(server.port).connect(["echo"], never);
    await using agent = await PythonClient.connect(server.port);
    await agent.publish(topic, "[12345678901234567890, 1.0]");
    expect(textOf(await pull(session).next())).toBe("[12345678901234567890, 1.0]");
  });
});

describe("a session", () => {
  test("connects the receiving client first, with every subscription, under ids of its own", async () => {
    await using server = await startScriptedServer(() => undefined);
    await using session = await brokerAt(server.port).connect(["a", "b"], never);
    await session.publish(message, never);
    const [receiving, publishing] = server.heard;
    expect(receiving).toMatchObject({
      cmd: "CONNECT",
      subscriptions: [invokeTopic(namespace, "a"), invokeTopic(namespace, "b")],
    });
    expect(publishing).toMatchObject({ cmd: "CONNECT", subscriptions: [] });
    const ids = [receiving?.["client_id"], publishing?.["client_id"]];
    expect(ids).toEqual([
      expect.stringMatching(/^worker-7-[0-9a-f]{24}$/),
      expect.stringMatching(/^worker-7-[0-9a-f]{24}$/),
    ]);
    expect(new Set(ids).size).toBe(2);
  });

  test("asks for a message only when one is pulled", async () => {
    let sent = 0;
    await using server = await startScriptedServer(({ cmd }) =>
      cmd === "RECEIVE" ? delivering("1", `${sent++}`) : undefined,
    );
    await using session = await brokerAt(server.port).connect(["echo"], never);
    const deliveries = pull(session);
    await session.publish(message, never);
    expect(sent).toBe(0);
    await deliveries.next();
    await session.publish(message, never);
    expect(sent).toBe(1);
  });

  test("hands a message out once that came through several subscriptions", async () => {
    const answers = [delivering("1", "a"), delivering("1", "a"), delivering("2", "b")];
    await using server = await startScriptedServer(({ cmd }) =>
      cmd === "RECEIVE" ? answers.shift() : undefined,
    );
    await using session = await brokerAt(server.port).connect(["echo"], never);
    const deliveries = pull(session);
    expect(textOf(await deliveries.next())).toBe("1");
    expect(textOf(await deliveries.next())).toBe("2");
  });

  test("skips what it cannot read, says so, and goes on", async () => {
    const answers: Reaction[] = [
      { line: "certainly not JSON" },
      delivering("1", "a", "{{}}"),
      delivering("2", "b"),
    ];
    await using server = await startScriptedServer(({ cmd }) =>
      cmd === "RECEIVE" ? answers.shift() : undefined,
    );
    const warnings: unknown[] = [];
    await using session = await brokerAt(server.port, warnings).connect(["echo"], never);
    expect(textOf(await pull(session).next())).toBe("2");
    expect(warnings).toEqual([
      { event: "message.unreadable", reason: "the line is not a JSON object" },
      {
        event: "message.unreadable",
        reason: "the user properties are not valid JSON at character 1",
      },
    ]);
  });

  test("skips a line that is longer than any message can be", async () => {
    const answers: Reaction[] = [
      { line: Buffer.alloc(maxAnswerBytes + 1, "x") },
      delivering("2", "b"),
    ];
    await using server = await startScriptedServer(({ cmd }) =>
      cmd === "RECEIVE" ? answers.shift() : undefined,
    );
    const warnings: unknown[] = [];
    await using session = await brokerAt(server.port, warnings).connect(["echo"], never);
    expect(textOf(await pull(session).next())).toBe("2");
    expect(warnings).toEqual([
      { event: "message.unreadable", reason: `the line has ${maxAnswerBytes + 1} bytes` },
    ]);
  });

  test("reads a message of 10 MiB that the server has blown up with escapes", async () => {
    const text = "\\u20ac".repeat(3_500_000);
    const answers = [delivering(`"${text}"`, "a")];
    await using server = await startScriptedServer(({ cmd }) =>
      cmd === "RECEIVE" ? answers.shift() : undefined,
    );
    await using session = await brokerAt(server.port).connect(["echo"], never);
    expect((await pull(session).next()).payload.length).toBe(text.length + 2);
  });

  test("refuses to publish what the broker would not read, naming both sizes, and lives", async () => {
    await using server = await startDevBroker();
    await using session = await brokerAt(server.port).connect([], never);
    const payload = Buffer.from(`"${"x".repeat(maxLineBytes)}"`);
    const publishing = session.publish({ topic: "t", payload }, never);
    await expect(publishing).rejects.toThrow(
      /takes a line of 104858\d\d bytes; the broker reads lines of at most 10485760 bytes/,
    );
    await expect(publishing).rejects.toMatchObject({ transient: false });
    await session.publish(message, never);
  });

  test("tells that the broker refused a payload that is not JSON, and lives", async () => {
    await using server = await startDevBroker();
    await using session = await brokerAt(server.port).connect([], never);
    const publishing = session.publish({ topic: "t", payload: Buffer.from("{") }, never);
    await expect(publishing).rejects.toThrow("The broker refused PUBLISH: INVALID_COMMAND");
    await expect(publishing).rejects.toMatchObject({ transient: false });
    await session.publish(message, never);
  });

  test("serves and leaves within the time of one RECEIVE", async () => {
    const tools = ["a", "b", "c"];
    const asked: unknown[] = [];
    // The RECEIVE ends when the server has heard of all of them, and they are answered behind it.
    await using server = await startScriptedServer(({ cmd, topic_pattern }) => {
      if (cmd === "RECEIVE") return "silent";
      if (cmd !== "SUBSCRIBE") return undefined;
      if (asked.push(topic_pattern) < tools.length) return "silent";
      return { line: ['{"status":"TIMEOUT"}', ...asked.map(() => '{"status":"OK"}')].join("\n") };
    });
    await using session = await brokerAt(server.port).connect([], never);
    const pending = session.deliveries[Symbol.asyncIterator]().next();
    await Promise.all(tools.map((tool) => session.serve(tool, never)));
    expect(asked).toEqual(tools.map((tool) => invokeTopic(namespace, tool)));
    await session[Symbol.asyncDispose]();
    await pending;
  });

  test("delivers what a RECEIVE brings that was on its way when it was paused", async () => {
    await using server = await startDevBroker();
    await using session = await brokerAt(server.port).connect(["echo"], never);
    await using agent = await PythonClient.connect(server.port);
    const deliveries = session.deliveries[Symbol.asyncIterator]();
    const delivery = deliveries.next();
    let isPaused = false;
    const paused = session.pause().then(() => (isPaused = true));
    await session.publish(message, never);
    expect(isPaused).toBe(false);
    await agent.publish(topic, "1");
    expect(textOf((await delivery).value as Delivery)).toBe("1");
    await paused;
    expect(await deliveries.next()).toEqual({ done: true, value: undefined });
  });

  test("takes what waits for it when it is paused, and subscribes to nothing any more", async () => {
    await using server = await startDevBroker();
    await using session = await brokerAt(server.port).connect(["echo", "other"], never);
    await session.serve("late", never);
    await using agent = await PythonClient.connect(server.port);
    for (const n of ["1", "2", "3"]) await agent.publish(topic, n);
    await session.pause();
    expect(server.subscriptions.flatMap(({ patterns }) => patterns)).toEqual([]);
    await session.serve("too-late", never);
    expect(server.subscriptions.flatMap(({ patterns }) => patterns)).toEqual([]);
    await agent.publish(topic, '"for others"');
    const texts: string[] = [];
    for await (const delivery of session.deliveries) texts.push(textOf(delivery));
    expect(texts).toEqual(["1", "2", "3"]);
  });

  test("asks once more for what came between its last RECEIVE and the pause", async () => {
    const answers: Reaction[] = [
      "silent",
      delivering("1", "a"),
      { line: "?" },
      delivering("2", "b"),
    ];
    await using server = await startScriptedServer(({ cmd }) => {
      // In order, as a server carries commands out: the RECEIVE in progress finds nothing.
      if (cmd === "UNSUBSCRIBE") return { line: '{"status":"TIMEOUT"}\n{"status":"OK"}' };
      return cmd === "RECEIVE" ? answers.shift() : undefined;
    });
    await using session = await brokerAt(server.port).connect(["echo"], never);
    const deliveries = pull(session);
    const delivery = deliveries.next();
    await session.pause();
    expect(textOf(await delivery)).toBe("1");
    expect(textOf(await deliveries.next())).toBe("2");
    await expect(deliveries.next()).rejects.toThrow("ended");
    const asked = server.heard.filter(({ cmd }) => cmd === "UNSUBSCRIBE" || cmd === "RECEIVE");
    expect(asked.map((command) => command["timeout_ms"] ?? command.cmd)).toEqual([
      1_000,
      "UNSUBSCRIBE",
      1,
      1,
      1,
      1,
    ]);
  });

  test("takes back a subscription that was not confirmed yet when it was paused", async () => {
    await using server = await startDevBroker();
    await using session = await brokerAt(server.port).connect([], never);
    const serving = session.serve("echo", never);
    await session.pause();
    await serving;
    expect(server.subscriptions.flatMap(({ patterns }) => patterns)).toEqual([]);
  });

  test("is lost when the broker does not let it go", async () => {
    const line = '{"status":"ERROR","error_code":"INTERNAL_ERROR","error_message":"no"}';
    await using server = await startScriptedServer(({ cmd }) =>
      cmd === "UNSUBSCRIBE" ? { line } : undefined,
    );
    await using session = await brokerAt(server.port).connect(["echo"], never);
    await session.pause();
    expect(await session.closed).toMatchObject({
      reason: "lost",
      cause: { message: "The broker refused UNSUBSCRIBE: INTERNAL_ERROR: no" },
    });
  });

  test.each([
    ["NOT_CONNECTED", "PUBLISH"],
    ["NOT_CONNECTED", "RECEIVE"],
    ["INTERNAL_ERROR", "RECEIVE"],
  ])("is lost when the broker answers %s to %s", async (code, failing) => {
    const line = JSON.stringify({ status: "ERROR", error_code: code, error_message: "sorry" });
    await using server = await startScriptedServer(({ cmd }) =>
      cmd === failing ? { line } : undefined,
    );
    await using session = await brokerAt(server.port).connect([], never);
    const pending = session.deliveries[Symbol.asyncIterator]().next();
    await session.publish(message, never).catch(() => {});
    expect(await session.closed).toMatchObject({
      reason: "lost",
      cause: { message: `The broker refused ${failing}: ${code}: sorry`, transient: true },
    });
    expect(await pending).toMatchObject({ done: true });
    await vi.waitFor(() => expect(server.connections).toBe(0), patience);
  });

  test("is lost when the broker does not answer a command in time", async () => {
    await using server = await startScriptedServer(({ cmd }) =>
      cmd === "PUBLISH" ? "silent" : undefined,
    );
    await using session = await brokerAt(server.port).connect([], never);
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    onTestFinished(() => void vi.useRealTimers());
    const publishing = session.publish(message, never);
    publishing.catch(() => {});
    vi.advanceTimersByTime(30_000);
    await expect(publishing).rejects.toThrow("did not answer a command within 30000 ms");
    expect(await session.closed).toMatchObject({ reason: "lost" });
  });

  test("gives up on an answer when told to, and keeps the answers apart", async () => {
    // The answer to the first publish, a refusal, comes late: together with the one to the second.
    const refusal = '{"status":"ERROR","error_code":"INVALID_COMMAND","error_message":"no"}';
    await using server = await startScriptedServer(({ topic: publishedTo }) => {
      if (publishedTo === "first") return "silent";
      return publishedTo === "second" ? { line: `${refusal}\n{"status":"OK"}` } : undefined;
    });
    await using session = await brokerAt(server.port).connect([], never);
    const controller = new AbortController();
    const reason = new Error("too late");
    const first = session.publish({ ...message, topic: "first" }, controller.signal);
    await vi.waitFor(() => expect(server.heard.at(-1)).toMatchObject({ topic: "first" }), patience);
    controller.abort(reason);
    await expect(first).rejects.toBe(reason);
    await session.publish({ ...message, topic: "second" }, never);
  });
});

describe("connecting", () => {
  test("to a port where nobody listens fails, and may be tried again", async () => {
    const server = await startDevBroker();
    await server[Symbol.asyncDispose]();
    await expect(brokerAt(server.port).connect([], never)).rejects.toMatchObject({
      name: "BrokerError",
      message: `Cannot connect to the broker at 127.0.0.1:${server.port}: ECONNREFUSED`,
      transient: true,
    });
  });

  test("to a server of another kind fails for good", async () => {
    const server = createServer((socket) => {
      socket.on("error", () => {});
      socket.end("HTTP/1.1 400 Bad Request\r\n\r\n");
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    onTestFinished(() => void server.close());
    const { port } = server.address() as { port: number };
    await expect(brokerAt(port).connect([], never)).rejects.toMatchObject({
      message: expect.stringContaining("The answer to CONNECT is not one of a DevBroker") as string,
      transient: false,
    });
  });

  test("leaves nothing open when the second connection is refused", async () => {
    let connects = 0;
    await using server = await startScriptedServer(() => (++connects === 2 ? "cut" : ok));
    await expect(brokerAt(server.port).connect([], never)).rejects.toMatchObject({
      transient: true,
    });
    await vi.waitFor(() => expect(server.connections).toBe(0), patience);
  });

  test("stops when told to before it has begun to speak, and leaves nothing open", async () => {
    await using server = await startScriptedServer(() => undefined);
    const controller = new AbortController();
    const reason = new Error("changed my mind");
    const connecting = brokerAt(server.port).connect([], controller.signal);
    controller.abort(reason);
    await expect(connecting).rejects.toBe(reason);
    // The server has seen a later connection come and go, so it has seen the earlier one as well.
    const session = await brokerAt(server.port).connect([], never);
    await session[Symbol.asyncDispose]();
    await vi.waitFor(() => expect(server.connections).toBe(0), patience);
  });

  test("stops when told to, and leaves nothing open", async () => {
    await using server = await startScriptedServer(() => "silent");
    const controller = new AbortController();
    const reason = new Error("changed my mind");
    const connecting = brokerAt(server.port).connect([], controller.signal);
    await vi.waitFor(() => expect(server.heard).toHaveLength(1), patience);
    controller.abort(reason);
    await expect(connecting).rejects.toBe(reason);
    await vi.waitFor(() => expect(server.connections).toBe(0), patience);
  });
});

describe("a process", () => {
  test("ends by itself once session and server are disposed of", async () => {
    const url = (path: string): string => JSON.stringify(new URL(`../../${path}`, import.meta.url));
    const program = `
      const { startDevBroker } = await import(${url("harness/dev-broker/dev-broker.ts")});
      const { openBroker } = await import(${url("worker/broker/open.ts")});
      const server = await startDevBroker();
      const log = { info() {}, warn() {} };
      const config = { kind: "dev", host: server.host, port: server.port, connectRetries: 0, connectRetryDelayMs: 3000 };
      const broker = await openBroker(config, { namespace: "ns", workerId: "w", log });
      const { signal } = new AbortController();
      const session = await broker.connect(["echo"], signal);
      const pending = session.deliveries[Symbol.asyncIterator]().next();
      await session.publish({ topic: "t", payload: Buffer.from("1") }, signal);
      server.dropConnections();
      await session.publish({ topic: "t", payload: Buffer.from("1") }, signal);
      await server[Symbol.asyncDispose]();
      await session[Symbol.asyncDispose]();
      await pending;
      // What has been closed is gone some turns later; only a timer would hold the process up for
      // long.
      for (let turn = 0; turn < 10; turn++) await new Promise((resolve) => setImmediate(resolve));
      console.log(process.getActiveResourcesInfo().includes("Timeout") ? "waits" : "disposed");
    `;
    const child = spawn(process.execPath, ["--input-type=module", "--eval", program], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    onTestFinished(() => void child.kill("SIGKILL"));
    const [said, [code]] = await Promise.all([text(child.stdout), once(child, "exit")]);
    expect(said).toBe("disposed\n");
    expect(code).toBe(0);
  });
});
