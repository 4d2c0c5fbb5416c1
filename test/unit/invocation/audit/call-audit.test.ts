/**
 * The lines of a call's start, with a log that is slow, or fails.
 */
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { CallAudit } from "../../../../worker/invocation/audit/call-audit.ts";
import type { Invocation } from "../../../../worker/protocol/invocation.ts";
import { type Clock, systemClock } from "../../../../worker/support/clock.ts";
import {
  QueuedAuditLog,
  maxWaitingBytes,
  retryMs,
} from "../../../../worker/telemetry/audit/queued-log.ts";
import { patience } from "../../../support/patience.ts";
import { keptLog } from "../../../support/workers/kept-log.ts";

const never = new AbortController().signal;

/** A call with so many artifacts in its request. */
function callWith(count: number): Invocation {
  const artifact = { version: 0, mimeType: "text/plain", bytes: Buffer.from("x") };
  const preloaded = new Map(
    Array.from({ length: count }, (_, n) => [`p${n}`, { ...artifact, filename: `${n}.txt` }]),
  );
  return { preloaded } as Partial<Invocation> as Invocation;
}

/** The audit of a call, into a log that writes each line when `write` has resolved. */
function newAudit(write: () => Promise<void>, isRequired = false) {
  const written: string[] = [];
  const sink = {
    async append(line: Buffer): Promise<void> {
      await write();
      const { event, artifact } = JSON.parse(line.toString()) as Record<string, unknown>;
      written.push([event, artifact].filter(Boolean).join(" "));
    },
    [Symbol.asyncDispose]: () => Promise.resolve(),
  };
  // It waits little before another attempt.
  const clock: Clock = {
    ...systemClock,
    sleep: (ms, signal) => systemClock.sleep(ms === retryMs ? 5 : ms, signal),
  };
  const log = keptLog();
  const audit = new QueuedAuditLog({ sink, workerId: "w", isRequired, clock, log });
  onTestFinished(() => audit[Symbol.asyncDispose]());
  const delivery = { topic: "ns/a2a/v1/sam_remote_tool/invoke/echo" };
  const call = CallAudit.of({ audit, namespace: "ns", clock }, delivery, "key=")!;
  return { audit, call, written, log };
}

describe("the start of a call", () => {
  test("has one line at a time in the memory of the log", async () => {
    const gates = Array.from({ length: 5 }, () => Promise.withResolvers<void>());
    let lines = 0;
    const { audit, call, written } = newAudit(() => gates[lines++]!.promise);
    const starting = call.start(callWith(3), never);
    audit.record({ event: "call.end" });
    for (const { resolve } of gates) resolve();
    await starting;
    // The other call's line came after one line of this call, not after all.
    const own = ["0.txt", "1.txt", "2.txt"].map((name) => `artifact.read ${name}`);
    expect(written).toEqual(["call.start", "call.end", ...own]);
  });

  test(
    "does not wait for a log that fails, and takes no more than the log's memory",
    { tags: "full" },
    async () => {
      let isFull = true;
      const full = () => (isFull ? Promise.reject(new Error("full")) : Promise.resolve());
      const { audit, call, written, log } = newAudit(full);
      await call.start(callWith(1), never);
      expect(audit.warnings).toHaveLength(1);
      const count = 30_000;
      await call.start(callWith(count), never);
      isFull = false;
      await vi.waitFor(() => expect(log.events).toContain("audit.recovered"), patience);
      const [{ lost } = { lost: 0 }] = log.factsOf("audit.recovered") as { lost: number }[];
      // A line has more than 100 bytes.
      expect(lost).toBeGreaterThan(count - maxWaitingBytes / 100);
      await vi.waitFor(() => expect(written).toHaveLength(count + 3 - lost), patience);
    },
  );

  test("ends with its first line if the log is required and fails", async () => {
    let isFull = true;
    const full = () => (isFull ? Promise.reject(new Error("full")) : Promise.resolve());
    const { audit, call, written } = newAudit(full, true);
    const refused = expect.objectContaining({ code: "TOOL_NOT_AVAILABLE" }) as Error;
    // The failure is found, and then known.
    await expect(call.start(callWith(3), never)).rejects.toThrow(refused);
    await expect(call.start(callWith(3), never)).rejects.toThrow(refused);
    isFull = false;
    await vi.waitFor(() => expect(audit.notReadyReasons).toEqual([]), patience);
    await vi.waitFor(() => expect(written).toEqual(["call.start", "call.start"]), patience);
  });
});
