/**
 * Requests to other workers that get no answer, on a broker in memory.
 */
import { expect, onTestFinished, test, vi } from "vitest";
import {
  BrokerError,
  type OutboundMessage,
  type PublishOutcome,
} from "../../../../worker/broker/broker.ts";
import { type ReconnectingSession, reconnecting } from "../../../../worker/broker/reconnecting.ts";
import { cancelTopic, invokeTopic } from "../../../../worker/protocol/topics.ts";
import { Exchanges, maxWaitingCalls } from "../../../../worker/runtime/remote/exchanges.ts";
import { Replies } from "../../../../worker/runtime/remote/replies.ts";
import { createLogger } from "../../../../worker/telemetry/logger.ts";
import { createMemoryBroker } from "../../../fakes/memory-broker/broker.ts";
import type { MemoryMessage } from "../../../fakes/memory-broker/subscription.ts";
import { patience } from "../../../support/patience.ts";
import { HandClock } from "../../broker/hand-clock.ts";

const namespace = "ns";
const never = new AbortController().signal;
const log = createLogger("silent", 1);

/** What a test has the session do in place of its own. */
interface Changes {
  readonly publish?: (message: OutboundMessage) => Promise<PublishOutcome>;
  readonly subscribe?: ReconnectingSession["subscribe"];
}

async function setUp(changes: Changes = {}) {
  const clock = new HandClock();
  const memory = createMemoryBroker({ namespace });
  // Who hears the calls, and answers none.
  const heard = memory.subscribe(">");
  const broker = reconnecting(memory, {
    ...{ maxAttempts: 0, backoff: { baseMs: 100, capMs: 100 }, clock, log },
  });
  const session = await broker.connect([], never);
  const parts = {
    publish: (message: OutboundMessage, signal: AbortSignal) =>
      changes.publish?.(message) ?? session.publish(message, signal),
    subscribe: changes.subscribe ?? session.subscribe.bind(session),
    get connection() {
      return session.connection;
    },
  };
  const replies = new Replies({ session: parts, namespace, log });
  const exchanges = new Exchanges({ session: parts, namespace, replies, clock });
  onTestFinished(async () => {
    heard[Symbol.dispose]();
    await exchanges[Symbol.asyncDispose]();
    await replies[Symbol.asyncDispose]();
    await session[Symbol.asyncDispose]();
  });
  const onSend = vi.fn<() => Promise<void>>().mockResolvedValue();
  const requestFor = ({ replyTo }: { readonly replyTo: string }): OutboundMessage => ({
    topic: invokeTopic(namespace, "weather"),
    payload: Buffer.from("{}"),
    properties: { replyTo, clientId: replies.name, userId: "u" },
  });
  const run = (signal = never) => exchanges.run({ requestFor, onSend, leftMs: 5_000 }, signal);
  return { memory, clock, session, heard, run, onSend };
}

test("a call without an answer ends in time, and is cancelled by its own reply topic", async () => {
  const { heard, clock, run, onSend } = await setUp();
  const next = async (): Promise<MemoryMessage> => {
    for await (const message of heard) return message;
    throw new Error("nothing is heard any more");
  };
  const called = run();
  const request = await next();
  expect(onSend).toHaveBeenCalledOnce();
  clock.advance(5_000);
  await expect(called).rejects.toMatchObject({ code: "SANDBOX_TIMEOUT", retryable: false });
  const cancel = await next();
  const replyTo = String(request.properties["replyTo"]);
  expect(cancel).toMatchObject({
    topic: cancelTopic(namespace, replyTo.split("/").at(-1) ?? ""),
    properties: { replyTo },
  });
});

test("a lost connection ends the calls that may run, and later ones at once", async () => {
  const { memory, session, run, onSend } = await setUp();
  const called = run();
  called.catch(() => undefined);
  await vi.waitFor(() => expect(onSend).toHaveBeenCalledOnce(), patience);
  memory.dropSessions();
  await expect(called).rejects.toMatchObject({ code: "SANDBOX_FAILED", retryable: false });
  expect(session.connected).toBe(false);
  await expect(run()).rejects.toMatchObject({ code: "TOOL_NOT_AVAILABLE", retryable: true });
  expect(onSend).toHaveBeenCalledOnce();
});

test("a broker that does not take the call is an error, which may be final", async () => {
  const refusal = new BrokerError("forbidden", { transient: false });
  const { run } = await setUp({ publish: () => Promise.reject(refusal) });
  await expect(run()).rejects.toMatchObject({ code: "TOOL_NOT_AVAILABLE", retryable: false });
  const { run: runUnheard } = await setUp({ publish: () => Promise.resolve("unroutable") });
  await expect(runUnheard()).rejects.toMatchObject({
    code: "TOOL_NOT_AVAILABLE",
    message: "No worker serves the tool",
    retryable: true,
  });
});

test("nothing is sent while no answer can arrive; the next call tries again", async () => {
  let attempts = 0;
  const refusal = new BrokerError("forbidden", { transient: false });
  const subscribe = () => {
    attempts++;
    return Promise.reject(refusal);
  };
  const { run, onSend } = await setUp({ subscribe });
  for (const attempt of [1, 2]) {
    await expect(run()).rejects.toMatchObject({ code: "TOOL_NOT_AVAILABLE", retryable: false });
    expect(attempts).toBe(attempt);
  }
  expect(onSend).not.toHaveBeenCalled();
});

test("the calls that wait are bounded", async () => {
  const { run } = await setUp();
  const stop = new AbortController();
  const waiting = Array.from({ length: maxWaitingCalls }, () => run(stop.signal));
  const ended = Promise.allSettled(waiting);
  await expect(run()).rejects.toMatchObject({ code: "RESOURCE_EXHAUSTED", retryable: true });
  stop.abort(new Error("enough"));
  for (const { status } of await ended) expect(status).toBe("rejected");
});

test("a call whose start cannot be marked is not sent, and is no cancel", async () => {
  const published: string[] = [];
  const publish = ({ topic }: OutboundMessage): Promise<PublishOutcome> => {
    published.push(topic);
    return Promise.resolve("confirmed");
  };
  const { run, onSend } = await setUp({ publish });
  const failure = new Error("the store is away");
  onSend.mockRejectedValue(failure);
  await expect(run()).rejects.toBe(failure);
  expect(published).toEqual([]);
});
