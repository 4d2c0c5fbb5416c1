/**
 * Connections between two parts of the worker.
 */
import { once } from "node:events";
import { expect, test } from "vitest";
import { localConnection } from "../../../worker/support/streams/local-connection.ts";

test("what one end writes, the other reads, up to the end, though the writer is gone", async () => {
  const [near, far] = localConnection();
  far.write("one ");
  far.end("two");
  far.destroySoon();
  await once(far, "close");
  const chunks = (await near.toArray()) as Buffer[];
  expect(Buffer.concat(chunks).toString()).toBe("one two");
  expect([near.bytesRead, far.bytesWritten]).toEqual([7, 7]);
});

test("a writer waits for a reader", async () => {
  const [near, far] = localConnection();
  const chunk = Buffer.alloc(1024 * 1024);
  let isWritten = false;
  near.write(chunk);
  near.write(chunk, () => (isWritten = true));
  await new Promise(setImmediate);
  expect(isWritten).toBe(false);
  far.resume();
  await once(near, "drain");
  await expect.poll(() => isWritten).toBe(true);
});

test("memory that was written may be used again", async () => {
  const [near, far] = localConnection();
  const chunk = Buffer.from("one");
  near.write(chunk, () => chunk.fill(0));
  const [read] = (await once(far, "data")) as Buffer[];
  expect(read!.toString()).toBe("one");
});

test("an end goes with the other, and by its error", async () => {
  const [near, far] = localConnection();
  const failed = once(near, "error");
  far.on("error", () => undefined);
  far.destroy(new Error("refused"));
  await expect(failed).resolves.toMatchObject([{ message: "refused" }]);
  const [one, other] = localConnection();
  one.destroy();
  await once(other, "close");
  expect(other.destroyed).toBe(true);
});
