/**
 * Calls of tools that are not served any more.
 */
import { describe, expect, test, vi } from "vitest";
import { Strays } from "../../../worker/broker/strays.ts";
import { keptLog } from "../../support/rabbitmq-options.ts";
import { patience } from "../../support/patience.ts";

const keptOut = "calls of a tool that is not served come into the queue no more";
const refused = "calls of a tool that is not served go on coming into the queue";

function open() {
  const log = keptLog();
  const ending = new AbortController();
  const asked: string[] = [];
  const strays = new Strays({
    isServed: (tool) => tool === "served",
    log,
    ended: ending.signal,
  });
  const notice = (tool: string, keepOut = () => Promise.resolve()): void =>
    strays.notice(tool, "q", () => {
      asked.push(tool);
      return keepOut();
    });
  return { log, ending, asked, strays, notice };
}

describe("a call of a tool that is not served", () => {
  test("has the broker asked once that no more come", async () => {
    const { log, asked, notice } = open();
    for (const tool of ["served", "gone", "gone", "other"]) notice(tool);
    await vi.waitFor(() => expect(log.events).toEqual([keptOut, keptOut]), patience);
    expect(asked).toEqual(["gone", "other"]);
    expect(log.factsOf(keptOut)[0]).toEqual({ queue: "q", tool: "gone" });
  });

  test("that was just left has nothing asked", () => {
    const { asked, strays, notice } = open();
    strays.expect("left");
    notice("left");
    expect(asked).toEqual([]);
  });

  test("that goes on coming is told, with the reason", async () => {
    const { log, notice } = open();
    const err = new Error("no permission");
    notice("gone", () => Promise.reject(err));
    await vi.waitFor(() => expect(log.events).toEqual([refused]), patience);
    expect(log.factsOf(refused)).toEqual([{ queue: "q", tool: "gone", err }]);
  });

  test("is not told of when the session has ended", async () => {
    const { log, ending, notice } = open();
    const failing = Promise.withResolvers<void>();
    notice("gone", () => failing.promise);
    ending.abort();
    failing.reject(new Error("the session has ended"));
    await expect(failing.promise).rejects.toThrow();
    // Whoever came after it has been told.
    await new Promise(setImmediate);
    expect(log.events).toEqual([]);
  });

  test("is let be where there are too many of them", () => {
    const { asked, notice } = open();
    for (let n = 0; n < 2_000; n++) notice(`tool-${n}`);
    expect(asked).toHaveLength(1_000);
  });
});
