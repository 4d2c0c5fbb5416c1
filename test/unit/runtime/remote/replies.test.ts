/**
 * Answers of other workers, as they come in.
 */
import { Writable } from "node:stream";
import { expect, test, vi } from "vitest";
import { Replies } from "../../../../worker/runtime/remote/replies.ts";
import { createLogger } from "../../../../worker/telemetry/logger.ts";
import { createMemoryBroker } from "../../../fakes/memory-broker/broker.ts";
import { patience } from "../../../support/patience.ts";

const namespace = "ns";
const never = new AbortController().signal;

test("only the first answer to what is expected counts; all others are counted", async () => {
  const lines: string[] = [];
  const output = new Writable({
    write: (chunk: Buffer, _encoding, done) => (lines.push(chunk.toString()), done()),
  });
  const memory = createMemoryBroker({ namespace });
  await using session = await memory.connect([], never);
  const log = createLogger("debug", output);
  await using replies = new Replies({ session, namespace, log });
  await replies.start(never);
  const answer = (topic: string, text: string) => memory.publish(topic, Buffer.from(text));
  using expected = replies.expect();
  using other = replies.expect();
  other[Symbol.dispose]();
  answer(expected.replyTo.replace(expected.id, "guessed"), "forged");
  answer(expected.replyTo, "first");
  answer(expected.replyTo, "second");
  answer(`${expected.replyTo}/more`, "longer");
  answer(other.replyTo, "late");
  expect(Buffer.from((await expected.answered).payload).toString()).toBe("first");
  await vi.waitFor(() => expect(lines).toHaveLength(4), patience);
  expect(lines.at(-1)).toContain('"ignored":4');
});

test("each process has a name of its own, and each answer an id", () => {
  const parts = { session: { subscribe: vi.fn() }, namespace, log: createLogger("silent", 1) };
  const [one, other] = [new Replies(parts), new Replies(parts)];
  expect(one.name).not.toBe(other.name);
  expect(one.expect().replyTo).not.toBe(one.expect().replyTo);
});
