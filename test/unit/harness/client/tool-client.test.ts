/**
 * The client library over a broker in this process.
 */
import { describe, expect, onTestFinished, test, vi } from "vitest";
import {
  BrokerError,
  ConfigError,
  RequestTooLargeError,
  ToolCallError,
  ToolClient,
  type ToolClientOptions,
} from "../../../../harness/client/tool-client.ts";
import type { Broker } from "../../../../worker/broker/broker.ts";
import { cancelTopic } from "../../../../worker/protocol/topics.ts";
import { createMemoryBroker } from "../../../fakes/memory-broker/broker.ts";
import { reconnecting } from "../../../../worker/broker/reconnecting.ts";
import { patience } from "../../../support/patience.ts";
import { type ServedRequest, serveTools } from "../../../support/brokers/served-tools.ts";

const namespace = "ns";

/** A client, and one tool that answers as a test says. */
async function setScene(
  handle: (request: ServedRequest) => Promise<void> | void,
  options: Partial<ToolClientOptions> = {},
) {
  const stack = new AsyncDisposableStack();
  onTestFinished(() => stack.disposeAsync());
  const broker = createMemoryBroker({ namespace });
  const requests: ServedRequest[] = [];
  stack.use(
    await serveTools(broker, ["tool"], (request) => {
      requests.push(request);
      return handle(request);
    }),
  );
  const client = stack.use(await ToolClient.connect({ broker, namespace, ...options }));
  return { broker, client, requests };
}

async function failureOf(call: Promise<unknown>): Promise<unknown> {
  return call.then(
    () => "no failure",
    (error: unknown) => error,
  );
}

describe("a call", () => {
  test("brings what the tool returned, and what it made", async () => {
    const created = { filename: "a.txt", version: 0, mime_type: "text/plain", size_bytes: 3 };
    const { client, requests } = await setScene((request) =>
      request.result({ text: "hé" }, { created_artifacts: [created] }),
    );
    const result = await client.invoke("tool", { n: 1 });
    expect(result).toEqual({
      toolResult: { text: "hé" },
      createdArtifacts: [
        {
          filename: "a.txt",
          version: 0,
          mimeType: "text/plain",
          sizeBytes: 3,
          description: undefined,
        },
      ],
      executionTimeMs: 12,
      roundTripMs: expect.any(Number) as number,
      correlationId: requests[0]?.id,
    });
    expect(requests[0]?.params).toMatchObject({ args: { n: 1 }, timeout_seconds: 300 });
  });

  test("says what it was told to say, and else who the client is", async () => {
    const { client, requests } = await setScene((request) => request.result({}), { name: "Me" });
    await client.invoke("tool");
    await client.invoke(
      "tool",
      {},
      {
        timeoutSeconds: 7,
        toolConfig: { key: "k" },
        profile: "restrictive",
        userId: "u",
        sessionId: "s",
      },
    );
    const said = requests.map(({ params }) => params);
    expect(said[0]).toMatchObject({ app_name: "Me", user_id: "Me", session_id: "Me" });
    expect(said[1]).toMatchObject({
      app_name: "Me",
      user_id: "u",
      session_id: "s",
      timeout_seconds: 7,
      tool_config: { key: "k" },
      sandbox_profile: "restrictive",
    });
  });

  test("tells its statuses in order before it ends", async () => {
    const { client } = await setScene(async (request) => {
      for (const text of ["one", "two", "three"]) await request.status(text);
      await request.result({});
    });
    const heard: string[] = [];
    await client.invoke("tool", {}, { onStatus: (text) => heard.push(text) });
    expect(heard).toEqual(["one", "two", "three"]);
  });

  test("takes artifacts of the store and such that are sent, alone and in lists", async () => {
    const { client, requests } = await setScene((request) => request.result({}));
    await client.invoke(
      "tool",
      { named: "by the caller" },
      {
        artifacts: {
          stored: { filename: "user:a.csv", version: 3 },
          latest: { filename: "b.csv" },
          sent: { filename: "c.txt", content: "é" },
          named: { filename: "d.bin", content: Uint8Array.of(0, 255), mimeType: "x/y" },
          list: [{ filename: "e" }, { filename: "f", content: "" }],
          listOfOne: [{ filename: "g" }],
          none: [],
        },
      },
    );
    const preloaded = { version: 0, metadata: {} };
    expect(requests[0]?.params).toMatchObject({
      args: {
        stored: "user:a.csv",
        latest: "b.csv",
        sent: "c.txt",
        named: "by the caller",
        list: ["e", "f"],
        listOfOne: ["g"],
      },
      artifact_references: {
        stored: { filename: "user:a.csv", version: 3 },
        latest: { filename: "b.csv" },
        "list[0]": { filename: "e" },
        "listOfOne[0]": { filename: "g" },
      },
      preloaded_artifacts: {
        sent: { ...preloaded, filename: "c.txt", content: "w6k=", mime_type: "text/plain" },
        named: { ...preloaded, filename: "d.bin", content: "AP8=", mime_type: "x/y" },
        "list[1]": { ...preloaded, filename: "f", content: "" },
      },
    });
  });

  test("comes to a topic of the client's own, unless it is given a name", async () => {
    const { client, broker, requests } = await setScene(({ result }) => result({}));
    await using other = await ToolClient.connect({ broker, namespace });
    await using named = await ToolClient.connect({ broker, namespace, name: "me" });
    for (const each of [client, other, named]) await each.invoke("tool");
    const inboxes = requests.map(({ properties }) =>
      String(properties["replyTo"]).split("/").at(-2),
    );
    expect(new Set(inboxes).size).toBe(3);
    expect(inboxes[0]).toMatch(/^harness_[0-9a-f]{24}$/);
    expect(inboxes[2]).toBe("me");
  });

  test("is its own among those of another client of the same name", async () => {
    const { client, broker } = await setScene(
      ({ params, result }) => result(params["args"] as object),
      { name: "harness" },
    );
    await using other = await ToolClient.connect({ broker, namespace, name: "harness" });
    const calls = [client, other].flatMap((each, index) =>
      [0, 1, 2].map((n) => each.invoke("tool", { number: 10 * index + n })),
    );
    const results = await Promise.all(calls);
    expect(results.map(({ toolResult }) => toolResult["number"])).toEqual([0, 1, 2, 10, 11, 12]);
  });
});

describe("a call without a result", () => {
  test("fails with the worker's code, message and data", async () => {
    const { client, requests } = await setScene((request) =>
      request.error("EXECUTION_ERROR", "too much memory", { limit: "memory" }),
    );
    const error = await failureOf(client.invoke("tool"));
    expect(error).toBeInstanceOf(ToolCallError);
    expect(error).toMatchObject({
      code: "EXECUTION_ERROR",
      message: "too much memory",
      tool: "tool",
      data: { limit: "memory" },
      correlationId: requests[0]?.id,
    });
  });

  test("fails with SANDBOX_TIMEOUT when the worker stopped the tool", async () => {
    const { client } = await setScene((request) => request.result({}, { timed_out: true }));
    await expect(client.invoke("tool")).rejects.toMatchObject({
      code: "SANDBOX_TIMEOUT",
      message: "The worker stopped the tool after 12 ms",
      data: { timed_out: true },
    });
  });

  test("fails with INVALID_RESPONSE for an answer that agents refuse", async () => {
    const { client } = await setScene((request) => request.answer({ result: { a: 1 } }));
    await expect(client.invoke("tool")).rejects.toMatchObject({ code: "INVALID_RESPONSE" });
  });

  test("is made once more after a second when the tool is not available, and no third time", async () => {
    vi.useFakeTimers();
    onTestFinished(() => void vi.useRealTimers());
    const { client, requests } = await setScene((request) =>
      requests.length === 1 ? request.error("TOOL_NOT_AVAILABLE", "gone") : request.result({}),
    );
    const call = client.invoke("tool");
    await vi.advanceTimersByTimeAsync(999);
    expect(requests).toHaveLength(1);
    await vi.advanceTimersByTimeAsync(1);
    await call;
    expect(requests).toHaveLength(2);
    expect(requests[0]?.id).not.toBe(requests[1]?.id);
  });

  test("fails with UNROUTABLE, a second later, where the broker has nobody for it", async () => {
    vi.useFakeTimers();
    onTestFinished(() => void vi.useRealTimers());
    const { client } = await setScene(() => undefined);
    let error: unknown;
    void failureOf(client.invoke("other")).then((e) => (error = e));
    await vi.advanceTimersByTimeAsync(999);
    expect(error).toBeUndefined();
    await vi.advanceTimersByTimeAsync(1);
    expect(error).toMatchObject({ name: "ToolCallError", code: "UNROUTABLE" });
  });

  test("fails with NO_ANSWER ten seconds after the tool's time", async () => {
    vi.useFakeTimers();
    onTestFinished(() => void vi.useRealTimers());
    const { client } = await setScene(() => undefined);
    let error: unknown;
    void failureOf(client.invoke("tool", {}, { timeoutSeconds: 7 })).then((e) => (error = e));
    await vi.advanceTimersByTimeAsync(16_999);
    expect(error).toBeUndefined();
    await vi.advanceTimersByTimeAsync(1);
    expect(error).toMatchObject({ code: "NO_ANSWER", message: "Nobody answered within 17 s" });
  });

  test("is cancelled by its signal, ends with its reason, and disturbs no other", async () => {
    const { broker, client, requests } = await setScene(({ params, result }) =>
      (params["args"] as { quick?: boolean }).quick ? result({}) : undefined,
    );
    using cancels = broker.subscribe(cancelTopic(namespace, ">"));
    const stopping = new AbortController();
    const call = client.invoke("tool", {}, { signal: stopping.signal });
    await vi.waitFor(() => expect(requests).toHaveLength(1), patience);
    stopping.abort(new Error("enough"));
    await expect(call).rejects.toThrow("enough");
    const { value: cancel } = await cancels[Symbol.asyncIterator]().next();
    expect(cancel).toMatchObject({ topic: cancelTopic(namespace, requests[0]!.id) });
    await client.invoke("tool", { quick: true });
  });

  test("that is cancelled before it is made is not made", async () => {
    const { client, requests } = await setScene(({ result }) => result({}));
    const signal = AbortSignal.abort(new Error("too early"));
    await expect(client.invoke("tool", {}, { signal })).rejects.toThrow("too early");
    await client.invoke("tool");
    expect(requests).toHaveLength(1);
  });

  test("does not wait long for a cancel that the broker does not take", async () => {
    const { broker } = await setScene(() => undefined);
    const isStuck = (topic: string): boolean => topic.includes("/cancel/");
    const stuck: Broker = {
      kind: "stuck",
      async connect(tools, signal) {
        const session = await broker.connect(tools, signal);
        const { publish } = session;
        session.publish = (message, over) =>
          isStuck(message.topic)
            ? new Promise((_, reject) => {
                over.addEventListener("abort", () => reject(over.reason as Error));
              })
            : publish.call(session, message, over);
        return session;
      },
    };
    await using client = await ToolClient.connect({ broker: stuck, namespace });
    const stopping = new AbortController();
    const call = client.invoke("tool", {}, { signal: stopping.signal });
    stopping.abort(new Error("enough"));
    await expect(call).rejects.toThrow("enough");
  });

  test("fails with what its caller throws at a status", async () => {
    const { client } = await setScene(async (request) => {
      await request.status("s");
      await request.result({});
    });
    const onStatus = (): never => {
      throw new Error("of the caller");
    };
    await expect(client.invoke("tool", {}, { onStatus })).rejects.toThrow("of the caller");
    await client.invoke("tool");
  });

  test("is not made at all when it cannot be asked for", async () => {
    const { client, requests } = await setScene((request) => request.result({}));
    const large = client.invoke("tool", { text: "x".repeat(10_000_000) });
    await expect(large).rejects.toThrow(RequestTooLargeError);
    await expect(client.invoke("a/>")).rejects.toThrow(TypeError);
    for (const timeoutSeconds of [0, 1.5, 86_401, NaN]) {
      await expect(client.invoke("tool", {}, { timeoutSeconds })).rejects.toThrow(RangeError);
    }
    expect(requests).toEqual([]);
  });
});

describe("a connection", () => {
  /** A client over sessions that are opened again at once. */
  const overReconnecting = (broker: Broker, maxAttempts: number): Promise<ToolClient> =>
    ToolClient.connect({
      namespace,
      broker: reconnecting(broker, {
        maxAttempts,
        backoff: { baseMs: 1, capMs: 1 },
        log: { info: () => undefined, warn: () => undefined },
      }),
    });

  test("that is lost and made again still brings the answers to calls on their way", async () => {
    const asked = Promise.withResolvers<ServedRequest>();
    const broker = createMemoryBroker({ namespace });
    await using _tool = await serveTools(broker, ["tool"], asked.resolve);
    await using client = await overReconnecting(broker, 0);
    const call = client.invoke("tool");
    const { id, properties } = await asked.promise;
    broker.dropSessions();
    const replyTo = properties["replyTo"] ?? "";
    const result = { tool_result: { ok: true }, execution_time_ms: 1 };
    const answer = Buffer.from(JSON.stringify({ jsonrpc: "2.0", id, result }));
    await vi.waitFor(() => expect(broker.publish(replyTo, answer)).toBe("confirmed"), patience);
    expect((await call).toolResult).toEqual({ ok: true });
  });

  test("takes the requests of many calls that are made at once", { tags: "full" }, async () => {
    const broker = createMemoryBroker({ namespace });
    await using _tool = await serveTools(broker, ["tool"], (request) => request.result({}));
    await using client = await overReconnecting(broker, 0);
    const calls = Array.from({ length: 2_000 }, () => client.invoke("tool"));
    expect(await Promise.all(calls)).toHaveLength(2_000);
  });

  test("that is made again late takes requests with the time of their call", async () => {
    vi.useFakeTimers({ toFake: ["Date"] });
    onTestFinished(() => void vi.useRealTimers());
    const broker = createMemoryBroker({ namespace });
    const { promise: isOpen, resolve: open } = Promise.withResolvers<void>();
    let connections = 0;
    const gated: Broker = {
      kind: "gated",
      async connect(tools, signal) {
        if (++connections > 1) await isOpen;
        return broker.connect(tools, signal);
      },
    };
    await using client = await overReconnecting(gated, 0);
    broker.dropSessions();
    await vi.waitFor(() => expect(connections).toBe(2), patience);
    const calledAtMs = Date.now();
    const call = client.invoke("tool");
    vi.setSystemTime(calledAtMs + 60_000);
    const requests: ServedRequest[] = [];
    await using _tool = await serveTools(broker, ["tool"], (request) => {
      requests.push(request);
      return request.result({});
    });
    open();
    await call;
    expect(requests.map(({ properties }) => Number(properties["timestamp"]))).toEqual([calledAtMs]);
  });

  test("that is lost for good fails the calls on their way, and later ones", async () => {
    const { client, broker, requests } = await setScene(() => undefined);
    const call = failureOf(client.invoke("tool"));
    await vi.waitFor(() => expect(requests).toHaveLength(1), patience);
    broker.dropSessions();
    for (const failure of [await call, await failureOf(client.invoke("tool"))]) {
      expect(failure).toBeInstanceOf(BrokerError);
      expect(failure).toMatchObject({ message: expect.stringMatching(/was lost/) as string });
    }
  });

  test("ends with the client, and the calls on their way with it", async () => {
    const { client, requests } = await setScene(() => undefined);
    const call = client.invoke("tool");
    await vi.waitFor(() => expect(requests).toHaveLength(1), patience);
    const failure = failureOf(call);
    await client[Symbol.asyncDispose]();
    expect(await failure).toMatchObject({ message: "The connection to the broker was closed" });
  });

  test("is not tried with names that cannot be used, or to a broker that is not understood", async () => {
    const broker = createMemoryBroker({ namespace });
    const attempts = [
      { broker, namespace: "a/*" },
      { broker, namespace, name: "a/b" },
      { broker, namespace, name: "" },
      { broker, namespace, name: "x".repeat(65) },
    ];
    for (const options of attempts) {
      await expect(ToolClient.connect(options)).rejects.toThrow(TypeError);
    }
    const unknown = ToolClient.connect({ broker: "redis://u:s3cret@h", namespace });
    const failure = await failureOf(unknown);
    expect(failure).toBeInstanceOf(ConfigError);
    expect(String(failure)).not.toContain("s3cret");
  });

  test("is not tried any more when its signal says so", async () => {
    const signal = AbortSignal.abort(new Error("too late"));
    const late = ToolClient.connect({
      broker: createMemoryBroker({ namespace }),
      namespace,
      signal,
    });
    await expect(late).rejects.toThrow("too late");
  });
});
