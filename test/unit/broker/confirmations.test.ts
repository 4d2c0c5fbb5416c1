/**
 * Messages without a confirmation: how many there may be, and how long.
 */
import { beforeEach, expect, onTestFinished, test, vi } from "vitest";
import type { PublishOutcome } from "../../../worker/broker/broker.ts";
import { Confirmations } from "../../../worker/broker/confirmations.ts";

/** Longer than any confirmation may take, in milliseconds. */
const longMs = 61_000;

beforeEach(() => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
});

/** A connection whose confirmations come when the test says so. */
function setUp(isBlocked = false) {
  const lost: unknown[] = [];
  const connection = { isBlocked, lose: (error: unknown) => lost.push(error) };
  const confirmations = new Confirmations(connection);
  const publish = (sizeBytes = 1) => {
    const { promise, resolve } = Promise.withResolvers<PublishOutcome>();
    return { outcome: confirmations.due(sizeBytes, () => promise), confirm: resolve };
  };
  return { lost, connection, publish };
}

test("a connection without any confirmation for a minute is lost", async () => {
  const { lost, publish } = setUp();
  const first = publish();
  void publish();
  await vi.advanceTimersByTimeAsync(longMs / 2);
  first.confirm("confirmed");
  expect(await first.outcome).toBe("confirmed");
  await vi.advanceTimersByTimeAsync(longMs / 2);
  expect(lost).toEqual([]);
  await vi.advanceTimersByTimeAsync(longMs / 2);
  expect(lost).toMatchObject([{ message: expect.stringContaining("confirmed no message") }]);
});

test("a connection with no confirmation due is not lost", async () => {
  const { lost, publish } = setUp();
  const { outcome, confirm } = publish();
  confirm("unroutable");
  expect(await outcome).toBe("unroutable");
  await vi.advanceTimersByTimeAsync(longMs);
  expect(lost).toEqual([]);
});

test("a broker that says that it takes no messages is waited for until it does", async () => {
  const { lost, connection, publish } = setUp(true);
  void publish();
  await vi.advanceTimersByTimeAsync(longMs);
  expect(lost).toEqual([]);
  connection.isBlocked = false;
  await vi.advanceTimersByTimeAsync(longMs);
  expect(lost).toHaveLength(1);
});

test("messages are refused beyond 2,000 or 192 MiB, until some are confirmed", async () => {
  const many = setUp();
  const [first] = Array.from({ length: 2_000 }, () => many.publish());
  const full = { transient: true, message: expect.stringContaining("2000 messages") };
  await expect(many.publish().outcome).rejects.toMatchObject(full);
  first?.confirm("confirmed");
  await first?.outcome;
  many.publish().confirm("confirmed");
  const large = setUp();
  void large.publish(150 * 1024 * 1024);
  const tooLarge = { transient: true, message: expect.stringContaining("bytes have no") };
  await expect(large.publish(50 * 1024 * 1024).outcome).rejects.toMatchObject(tooLarge);
});
