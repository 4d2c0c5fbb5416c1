/**
 * Our DevBroker where the recorded exchanges do not reach: limits, hasty and dying clients, and
 * what it tells its owner.
 */
import { once } from "node:events";
import { connect } from "node:net";
import { describe, expect, test, vi } from "vitest";
import { type DevBroker, startDevBroker } from "../../harness/dev-broker/dev-broker.ts";
import {
  maxPatternsPerClient,
  maxQueuedBytes,
  maxQueuedMessages,
} from "../../harness/dev-broker/dev-broker-hub.ts";
import { maxLineBytes } from "../../worker/broker/dev/wire.ts";
import { PythonClient, pythonJson } from "../conformance/peers/dev-peer.ts";
import { patience } from "../support/patience.ts";

const never = new AbortController().signal;

function subscribe(pattern: string): string {
  return pythonJson({ cmd: "SUBSCRIBE", topic_pattern: pattern });
}

/** Everything the server says to a client that sends `text` and then ends its side. */
async function sayAndHangUp(broker: DevBroker, text: string): Promise<readonly unknown[]> {
  const socket = connect({ port: broker.port, host: broker.host, allowHalfOpen: true });
  socket.end(text);
  const chunks = await socket.setEncoding("utf8").toArray();
  const lines = chunks.join("").trimEnd().split("\n");
  return lines.map((line): unknown => JSON.parse(line));
}

describe("a line", () => {
  /** A PUBLISH of exactly `sizeBytes`. */
  function publishOf(sizeBytes: number): string {
    const [head, tail] = ['{"cmd":"PUBLISH","topic":"big","payload":"', '"}'];
    return head + "x".repeat(sizeBytes - head.length - tail.length) + tail;
  }

  test("of 10 MiB is read and its message delivered", async () => {
    await using broker = await startDevBroker();
    await using receiver = await PythonClient.connect(broker.port, ["big"]);
    await using sender = await PythonClient.connect(broker.port);
    expect(await sender.command(publishOf(maxLineBytes))).toContain('"status":"OK"');
    expect((await receiver.receive()).payload.length).toBeGreaterThan(maxLineBytes - 100);
  });

  test("of one byte more ends the connection without an answer", async () => {
    await using broker = await startDevBroker();
    await using sender = await PythonClient.connect(broker.port);
    await expect(sender.command(publishOf(maxLineBytes + 1))).rejects.toThrow("without an answer");
    expect(broker.subscriptions).toEqual([]);
  });

  test("without end ends the connection when it is too long", async () => {
    await using broker = await startDevBroker();
    const socket = connect({ port: broker.port, host: broker.host });
    socket.on("error", () => {});
    socket.resume();
    const piece = Buffer.alloc(1024 * 1024, "x");
    for (let size = 0; size <= maxLineBytes; size += piece.length) socket.write(piece);
    await once(socket, "close");
  });
});

describe("a client", () => {
  test("that says everything at once and hangs up gets every answer", async () => {
    await using broker = await startDevBroker();
    const answers = await sayAndHangUp(
      broker,
      [
        '{"cmd":"CONNECT","client_id":"hasty","subscriptions":["t"]}',
        '{"cmd":"RECEIVE","timeout_ms":600000}',
        '{"cmd":"PUBLISH","topic":"t","payload":1}',
        '{"cmd":"FOO"}',
        "",
      ].join("\n"),
    );
    expect(answers).toEqual([
      { status: "OK", client_id: "hasty" },
      { status: "TIMEOUT" },
      { status: "OK", message_id: expect.any(String) as string },
      { status: "ERROR", error_code: "INVALID_COMMAND", error_message: "Unknown command: FOO" },
    ]);
    expect(broker.subscriptions).toEqual([]);
  });

  test("that talks on while it waits is not listened to without bound", async () => {
    await using broker = await startDevBroker();
    await using other = await PythonClient.connect(broker.port);
    const socket = connect({ port: broker.port, host: broker.host });
    socket.on("error", () => {});
    socket.write('{"cmd":"CONNECT"}\n{"cmd":"RECEIVE","timeout_ms":600000}\n');
    const talk = 64 * 1024 * 1024;
    socket.write(Buffer.alloc(talk, '{"cmd":"ACK"}\n'));
    // Once nothing has moved while the server answered others for a while, it has stopped to read.
    let before: number;
    do {
      before = socket.writableLength;
      for (let n = 0; n < 200; n++) await other.publish("t", "1");
    } while (socket.writableLength < before);
    expect(socket.writableLength).toBeGreaterThan(talk / 2);
    socket.destroy();
    await once(socket, "close");
  });

  test("that dies inside a RECEIVE is forgotten at once", async () => {
    await using broker = await startDevBroker();
    const client = await PythonClient.connect(broker.port, ["t"]);
    const receiving = client.command('{"cmd":"RECEIVE","timeout_ms":600000}');
    receiving.catch(() => {});
    await client[Symbol.asyncDispose]();
    await vi.waitFor(() => expect(broker.subscriptions).toEqual([]), patience);
  });

  test("that comes back under its former id keeps its place when the former connection ends", async () => {
    await using broker = await startDevBroker();
    const hello = '{"cmd":"CONNECT","client_id":"same","subscriptions":["t"]}';
    const former = await PythonClient.connect(broker.port);
    await former.command(hello);
    const receiving = former.command('{"cmd":"RECEIVE","timeout_ms":600000}');
    receiving.catch(() => {});
    await using latter = await PythonClient.connect(broker.port);
    await latter.command(hello);
    await former[Symbol.asyncDispose]();
    await using sender = await PythonClient.connect(broker.port);
    await sender.publish("t", "1");
    expect((await latter.receive()).payload).toBe("1");
  });

  test("that connects again on the same connection is another client", async () => {
    await using broker = await startDevBroker();
    await using client = await PythonClient.connect(broker.port, ["former"]);
    await client.command('{"cmd":"CONNECT","client_id":"new","subscriptions":["latter"]}');
    expect(broker.subscriptions).toEqual([{ clientId: "new", patterns: ["latter"] }]);
  });

  test("gets one copy for each pattern, and of one pattern given twice only one", async () => {
    await using broker = await startDevBroker();
    await using receiver = await PythonClient.connect(broker.port, ["o/a", "o/*", "o/*"]);
    await using sender = await PythonClient.connect(broker.port);
    await sender.publish("o/a", "1");
    await sender.publish("o/b", "2");
    const payloads = [];
    for (let n = 0; n < 3; n++) payloads.push((await receiver.receive()).payload);
    expect(payloads).toEqual(["1", "1", "2"]);
  });

  test("that subscribes to too much is refused and goes on", async () => {
    await using broker = await startDevBroker();
    const patterns = Array.from({ length: maxPatternsPerClient }, (_, index) => `t/${index}`);
    await using client = await PythonClient.connect(broker.port, patterns);
    expect(await client.command(subscribe("more"))).toContain("SUBSCRIBE_FAILED");
    expect(
      await client.command(pythonJson({ cmd: "CONNECT", subscriptions: [...patterns, "more"] })),
    ).toBe(
      '{"status":"ERROR","error_code":"INTERNAL_ERROR","error_message":"Connect failed"}\n'.trim(),
    );
    expect(await client.command('{"cmd":"UNSUBSCRIBE","topic_pattern":"t/0"}')).toContain("OK");
    expect(await client.command(subscribe("more"))).toContain("OK");
  });

  test(
    "that does not read loses its oldest messages, and the owner is told",
    { tags: "full" },
    async () => {
      await using broker = await startDevBroker();
      const losses: unknown[] = [];
      broker.events.on("dropped", (loss) => losses.push(loss));
      await using reader = await PythonClient.connect(broker.port);
      await reader.command('{"cmd":"CONNECT","client_id":"slow","subscriptions":["t"]}');
      await using sender = await PythonClient.connect(broker.port);
      for (let n = 0; n < maxQueuedMessages + 2; n++) await sender.publish("t", `${n}`);
      expect(losses).toEqual([
        { clientId: "slow", total: 1 },
        { clientId: "slow", total: 2 },
      ]);
      expect((await reader.receive()).payload).toBe("2");
    },
  );

  test("that does not read holds a bounded number of bytes", { tags: "full" }, async () => {
    await using broker = await startDevBroker();
    await using reader = await PythonClient.connect(broker.port, ["t"]);
    await using sender = await PythonClient.connect(broker.port);
    const sizeBytes = 8 * 1024 * 1024;
    const fitting = Math.floor(maxQueuedBytes / sizeBytes) - 1;
    const text = "x".repeat(sizeBytes);
    for (let n = 0; n < fitting + 2; n++) await sender.publish("t", `"${n}${text}"`);
    expect((await reader.receive()).payload.slice(0, 2)).toBe('"2');
  });
});

describe("a message", () => {
  test("passes through to the letter", async () => {
    await using broker = await startDevBroker();
    await using receiver = await PythonClient.connect(broker.port, ["t"]);
    await using sender = await PythonClient.connect(broker.port);
    const payload = '{"a": [NaN, -Infinity, 1.0, 12345678901234567890], "€": "\\u20ac"}';
    const properties = '{"n": 1, "none": null, "list": [1], "text": "\\u20ac"}';
    await sender.command(
      `{"cmd": "PUBLISH", "topic": "t", "payload": ${payload}, "user_properties": ${properties}}`,
    );
    const answer = await receiver.command('{"cmd": "RECEIVE", "timeout_ms": 1000}');
    expect(answer).toContain(`"payload":${payload}`);
    expect(answer).toContain(`"user_properties":${properties}`);
  });
});

describe("the owner", () => {
  test("can wait until somebody subscribes", async () => {
    await using broker = await startDevBroker();
    const atConnect = broker.whenSubscribed("a/b", never);
    const later = broker.whenSubscribed("c/d", never);
    await using client = await PythonClient.connect(broker.port, ["a/>"]);
    await atConnect;
    await client.command(subscribe("c/*"));
    await later;
    await broker.whenSubscribed("c/e", never);
    expect(broker.subscriptions).toMatchObject([{ patterns: ["a/>", "c/*"] }]);
  });

  test("stops waiting when told to, and leaves no listener behind", async () => {
    await using broker = await startDevBroker();
    const reason = new Error("enough");
    const controller = new AbortController();
    const waiting = broker.whenSubscribed("a", controller.signal);
    controller.abort(reason);
    await expect(waiting).rejects.toBe(reason);
    await expect(broker.whenSubscribed("a", controller.signal)).rejects.toBe(reason);
    expect(broker.events.listenerCount("subscribed")).toBe(0);
  });

  test("can cut every connection and still be connected to", async () => {
    await using broker = await startDevBroker();
    await using client = await PythonClient.connect(broker.port, ["t"]);
    const receiving = client.command('{"cmd":"RECEIVE","timeout_ms":600000}');
    broker.dropConnections();
    await expect(receiving).rejects.toThrow("without an answer");
    await using again = await PythonClient.connect(broker.port);
    expect(await again.command('{"cmd":"ACK"}')).toBe('{"status":"OK"}');
  });

  test("is told when the port is taken", async () => {
    await using broker = await startDevBroker();
    await expect(startDevBroker({ port: broker.port })).rejects.toMatchObject({
      code: "EADDRINUSE",
    });
  });
});
