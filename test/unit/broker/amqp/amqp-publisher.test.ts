/**
 * What becomes of a message that RabbitMQ refuses while its caller goes.
 */
import { EventEmitter } from "node:events";
import { expect, onTestFinished, test, vi } from "vitest";
import type { AmqpConnection } from "../../../../worker/broker/amqp/connection.ts";
import { Publisher } from "../../../../worker/broker/amqp/publisher.ts";
import { systemClock } from "../../../../worker/support/clock.ts";

/** Longer than the publisher waits for a confirmation that is due, in milliseconds. */
const longMs = 10 * 60_000;

test("a refused message whose caller has gone is not sent again, and no confirmation of it is due", async () => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const sent: string[] = [];
  const channel = Object.assign(new EventEmitter(), {
    publish: (_exchange: string, key: string, ...more: unknown[]) => {
      sent.push(key);
      const confirm = more.at(-1) as (error: unknown) => void;
      confirm(new Error("message nacked"));
    },
  });
  const lost: unknown[] = [];
  const connection = {
    ended: new AbortController().signal,
    isBlocked: false,
    openConfirmChannel: () => Promise.resolve(channel),
    lose: (error: unknown) => lost.push(error),
  } as unknown as AmqpConnection;
  const never = new AbortController().signal;
  const publisher = await Publisher.open(connection, "exchange", systemClock, never);
  const caller = new AbortController();
  const message = { topic: "status/here", payload: Buffer.from("{}") };
  const publishing = publisher.publish(message, caller.signal);
  const gone = new Error("the call is over");
  await vi.advanceTimersByTimeAsync(1);
  caller.abort(gone);
  await expect(publishing).rejects.toBe(gone);
  await vi.advanceTimersByTimeAsync(longMs);
  expect(sent).toHaveLength(1);
  expect(lost).toEqual([]);
});
