/**
 * Learning of other workers' tools after a broker was away.
 */
import { expect, onTestFinished, test, vi } from "vitest";
import { BrokerError, type BrokerSubscription } from "../../../../worker/broker/broker.ts";
import { type ReconnectingSession, reconnecting } from "../../../../worker/broker/reconnecting.ts";
import { RemoteDirectory } from "../../../../worker/gateway/remote.ts";
import { discoveryTopic } from "../../../../worker/protocol/topics.ts";
import { Learning, listenRetryMs } from "../../../../worker/runtime/remote/learning.ts";
import { Replies } from "../../../../worker/runtime/remote/replies.ts";
import { createLogger } from "../../../../worker/telemetry/logger.ts";
import { createMemoryBroker } from "../../../fakes/memory-broker/broker.ts";
import { patience } from "../../../support/patience.ts";
import { HandClock } from "../../broker/hand-clock.ts";

const namespace = "ns";
const never = new AbortController().signal;
const log = createLogger("silent", 1);
const away = new BrokerError("The broker is away", { transient: true });
const denied = new BrokerError("The broker refuses it", { transient: false });

/** Learning of the tool `weather`, and a worker that answers for it. */
async function learn(change: (session: ReconnectingSession) => Partial<ReconnectingSession>) {
  await using stack = new AsyncDisposableStack();
  const clock = new HandClock();
  const memory = createMemoryBroker({ namespace });
  const connect = reconnecting(memory, {
    ...{ maxAttempts: 0, backoff: { baseMs: 0, capMs: 0 }, log },
  });
  const real = stack.use(await connect.connect([], never));
  const { publish, subscribe } = { ...bound(real), ...change(real) };
  const session = {
    publish,
    subscribe,
    get connection() {
      return real.connection;
    },
  };
  const replies = stack.use(new Replies({ session: real, namespace, log }));
  const directory = new RemoteDirectory();
  directory.follow(["weather"]);
  const learning = stack.use(new Learning({ session, namespace, directory, replies, clock, log }));
  const requests = stack.use(memory.subscribe(discoveryTopic(namespace, "init_request", ">")));
  const counts = { asked: 0 };
  const answers = (async () => {
    for await (const { properties, payload } of requests) {
      const { id } = JSON.parse(Buffer.from(payload).toString()) as { id: string };
      const result = { description: `answer ${++counts.asked}` };
      const answer = { jsonrpc: "2.0", id, result };
      memory.publish(String(properties["replyTo"]), Buffer.from(JSON.stringify(answer)));
    }
  })();
  learning.follow();
  const owned = stack.move();
  onTestFinished(async () => {
    await owned.disposeAsync();
    await answers;
  });
  const isAnswered = (description: string) =>
    vi.waitFor(() => expect(directory.get("weather")?.description).toBe(description), patience);
  const isWaiting = () => vi.waitFor(() => expect(clock.sleeping).toBe(1), patience);
  return { clock, memory, learning, directory, counts, isAnswered, isWaiting };
}

function bound(session: ReconnectingSession): Pick<ReconnectingSession, "publish" | "subscribe"> {
  return {
    publish: session.publish.bind(session),
    subscribe: session.subscribe.bind(session),
  };
}

test("a request that the broker did not take is sent again", async () => {
  const failures = [away];
  const { clock, counts, isAnswered, isWaiting } = await learn((session) => ({
    publish: async (message, signal) => {
      const failure = failures.pop();
      if (failure !== undefined) throw failure;
      return await session.publish(message, signal);
    },
  }));
  await isWaiting();
  expect({ ...counts, slept: clock.slept }).toEqual({ asked: 0, slept: [listenRetryMs] });
  clock.advance(listenRetryMs);
  await isAnswered("answer 1");
});

test("a request that the broker refuses is not sent again on this connection", async () => {
  const publish = vi.fn(async () => Promise.reject(denied));
  const { clock, memory, learning, isWaiting } = await learn(() => ({ publish }));
  await vi.waitFor(() => expect(publish).toHaveBeenCalledOnce(), patience);
  expect(clock.slept).toEqual([]);
  memory.dropSessions();
  await isWaiting();
  clock.advance(listenRetryMs);
  await vi.waitFor(() => expect(publish).toHaveBeenCalledTimes(2), patience);
  learning.follow();
  await vi.waitFor(() => expect(publish).toHaveBeenCalledTimes(3), patience);
});

test("each connection asks once", async () => {
  const { clock, memory, learning, counts, isAnswered, isWaiting } = await learn(() => ({}));
  await isAnswered("answer 1");
  learning.follow();
  memory.dropSessions();
  await isWaiting();
  expect(counts.asked).toBe(1);
  clock.advance(listenRetryMs);
  await isAnswered("answer 2");
});

test("a subscription that fails is disposed, and the next one asks again", async () => {
  const broken: BrokerSubscription[] = [];
  const { clock, isAnswered, isWaiting } = await learn((session) => ({
    subscribe: async (pattern, signal) => {
      const heard = await session.subscribe(pattern, signal);
      if (broken.length > 0 || !pattern.includes("/init/")) return heard;
      const failing = {
        dropped: 0,
        [Symbol.asyncIterator]: () => ({ next: () => Promise.reject(away) }),
        [Symbol.asyncDispose]: vi.fn(() => heard[Symbol.asyncDispose]()),
      };
      broken.push(failing);
      return failing;
    },
  }));
  await isWaiting();
  await isAnswered("answer 1");
  expect(broken[0]?.[Symbol.asyncDispose]).toHaveBeenCalledOnce();
  clock.advance(listenRetryMs);
  await isAnswered("answer 2");
  await vi.waitFor(() => expect(clock.sleeping).toBe(0), patience);
});
