/**
 * How cancels come from the broker to the calls.
 */
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { BrokerError, type BrokerSession } from "../../../../worker/broker/broker.ts";
import {
  CancelListener,
  cancelRetryMs,
} from "../../../../worker/invocation/cancellation/cancel-listener.ts";
import { cancelTopic } from "../../../../worker/protocol/topics.ts";
import { createMemoryBroker } from "../../../fakes/memory-broker/broker.ts";
import { patience } from "../../../support/patience.ts";
import { keptLog } from "../../../support/workers/kept-log.ts";

const namespace = "test/ns/";
const never = new AbortController().signal;

async function listen(wrap: (session: BrokerSession) => Pick<BrokerSession, "subscribe">) {
  const broker = createMemoryBroker({ namespace });
  const session = await broker.connect([], never);
  const [received, slept]: [unknown[], number[]] = [[], []];
  const log = keptLog();
  const listener = new CancelListener({
    session: wrap(session),
    namespace,
    cancels: { receive: (id, sender) => void received.push([id, sender]) },
    clock: { sleep: (ms) => (slept.push(ms), Promise.resolve()) },
    log: log as never,
  });
  onTestFinished(async () => {
    await listener[Symbol.asyncDispose]();
    await session[Symbol.asyncDispose]();
  });
  await listener.start(never);
  return { broker, received, slept, log, listener };
}

describe("a worker", () => {
  test("receives each cancel of its namespace, whatever its payload is", async () => {
    const { broker, received } = await listen((session) => session);
    const properties = { replyTo: "r", clientId: "c" };
    for (const payload of ["", "{", '{"jsonrpc":"2.0"}'])
      broker.publish(cancelTopic(namespace, "1"), Buffer.from(payload), properties);
    broker.publish(cancelTopic("another", "2"), Buffer.from(""), properties);
    broker.publish(cancelTopic(namespace, "a/b"), Buffer.from(""), {});
    const sender = { ...properties, user: undefined };
    await vi.waitFor(
      () =>
        expect(received).toEqual([
          ["1", sender],
          ["1", sender],
          ["1", sender],
          ["a/b", { replyTo: undefined, clientId: undefined, user: undefined }],
        ]),
      patience,
    );
  });

  test("that may not subscribe says so once, and tries again until it may", async () => {
    let refusals = 3;
    const { broker, received, slept, log } = await listen((session) => ({
      subscribe: (pattern, signal) =>
        refusals-- > 0
          ? Promise.reject(new BrokerError("no", { transient: false }))
          : session.subscribe(pattern, signal),
    }));
    expect(log.events).toEqual(["cancel.listen_failed"]);
    await vi.waitFor(() => expect(slept).toEqual([1, 2, 3].map(() => cancelRetryMs)), patience);
    await vi.waitFor(() => {
      broker.publish(cancelTopic(namespace, "1"), Buffer.from(""), {});
      expect(received).not.toEqual([]);
    }, patience);
    expect(log.events).toEqual(["cancel.listen_failed"]);
  });

  test("that is stopped while it may not subscribe tries no more", async () => {
    const subscribe = vi.fn(() => Promise.reject(new BrokerError("no", { transient: false })));
    const { listener } = await listen(() => ({ subscribe }));
    await listener[Symbol.asyncDispose]();
    const attempts = subscribe.mock.calls.length;
    await new Promise((resolve) => setImmediate(resolve));
    expect(subscribe).toHaveBeenCalledTimes(attempts);
  });
});
