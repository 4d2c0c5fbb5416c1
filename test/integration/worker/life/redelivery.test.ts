/**
 * What calls can rely on when a broker delivers them more than once: docs/brokers.md, on whole
 * workers.
 */
import { describe, expect, test, vi } from "vitest";
import { invokeTopic } from "../../../../worker/protocol/topics.ts";
import {
  breakingAfterAnswer,
  reconnectingAfter,
  tellingOfDeliveries,
} from "../../../support/brokers/changed-broker.ts";
import { MemoryWorkers } from "../../../support/workers/memory-workers.ts";
import { patience } from "../../../support/patience.ts";
import { namespace } from "../../../support/workers/rig.ts";
import type { AnnouncingTool, StartedWorker } from "../../../support/workers/worker-place.ts";

const longMs = 600_000;
const done = { kind: "success", toolResult: { told: "done" } };
const nothingLeft = { requeued: 0, abandoned: 0 };

const says = ({ said }: StartedWorker, event: string): Promise<void> =>
  vi.waitFor(() => expect(said()).toContain(event), patience);

describe("a call that is delivered again because the connection broke", () => {
  const goesOn = async (tool: AnnouncingTool): Promise<void> => {
    const workers = await MemoryWorkers.prepare();
    const started = await workers.startWorker(2);
    workers.publish(tool, "call");
    await workers.runs.haveBegun("call");
    workers.broker.dropSessions();
    await says(started, "call.redelivered_while_running");
    // A drain waits for it, and settles it before the connection closes.
    const drained = started.worker.drain(longMs);
    workers.runs.finish("call");
    expect(await drained).toEqual({ finished: 1, ...nothingLeft });
    await started.worker[Symbol.asyncDispose]();
    await workers.answered("call");
    expect(workers.answers.get("call")).toMatchObject([done]);
    expect(workers.runs.begun).toEqual(["call"]);
    await workers.expectAllSettled(tool);
  };
  const whileRuns = "while its tool runs goes on, runs once and is answered once, when it is %s";
  test.for(["once_only"] as const)(whileRuns, goesOn);
  test.for(["repeatable"] as const)(whileRuns, { tags: "full" }, goesOn);

  test("between its answer and its settlement does not run again", async () => {
    const tool = "repeatable";
    const workers = await MemoryWorkers.prepare();
    const { broker } = workers;
    const breaking = breakingAfterAnswer(broker, () => broker.dropSessions());
    const started = await workers.startWorker(2, breaking);
    workers.publish(tool, "call");
    await workers.runs.haveBegun("call");
    workers.runs.finish("call");
    // While the worker takes note of its answer, or after that: then the answer goes out again.
    await says(started, "call was delivered again");
    expect(await started.worker.drain(longMs)).toMatchObject(nothingLeft);
    await started.worker[Symbol.asyncDispose]();
    for (const answer of workers.answers.get("call") ?? []) expect(answer).toMatchObject(done);
    expect(workers.answers.size).toBe(1);
    expect(workers.runs.begun).toEqual(["call"]);
    await workers.expectAllSettled(tool);
  });
});

test(
  "calls that fill their worker all come back to it when the connection broke, and others get the rest",
  { tags: "full" },
  async () => {
    const workers = await MemoryWorkers.prepare({ maxUnsettled: 3 });
    const full = await workers.startWorker(2);
    workers.publish("repeatable", "first", "second", "waiting");
    await workers.runs.haveBegun("first", "second");
    await says(full, "call.no_free_slot");
    workers.broker.dropSessions();
    const again = /call\.redelivered_while_running/g;
    await vi.waitFor(() => expect(full.said().match(again)).toHaveLength(3), patience);
    workers.publish("repeatable", "rest");
    await workers.startWorker(2);
    await workers.runs.haveBegun("first", "second", "rest");
    workers.runs.finish("first", "second", "rest");
    await workers.runs.haveBegun("first", "second", "rest", "waiting");
    workers.runs.finish("waiting");
    await workers.answered("first", "second", "waiting", "rest");
    expect([...workers.answers.values()].flat()).toMatchObject([done, done, done, done]);
  },
);

describe("a call that another worker had before", () => {
  const runs = async (tool: AnnouncingTool): Promise<void> => {
    const workers = await MemoryWorkers.prepare();
    const taken = workers.takeAndDie(tool);
    workers.publish(tool, "call");
    await taken;
    await workers.startWorker(1);
    await workers.runs.haveBegun("call");
    workers.runs.finish("call");
    await workers.answered("call");
    expect(workers.answers.get("call")).toMatchObject([done]);
  };
  const notBegun = "and did not begin is run, when it is %s";
  test.for(["once_only", "repeatable"] as const)(notBegun, { tags: "full" }, runs);

  test(
    "and began is answered NOT_REPEATED and not run when it must not",
    { tags: ["full", "promise-B5"] },
    async () => {
      const workers = await MemoryWorkers.prepare();
      const taken = workers.takeAndDie("once_only");
      workers.publish("once_only", "call");
      await taken;
      await workers.markBegun("once_only", "call");
      const { worker } = await workers.startWorker(1);
      await workers.answered("call");
      expect(await worker.drain(longMs)).toMatchObject(nothingLeft);
      expect(workers.answers.get("call")).toMatchObject([
        { kind: "error", code: "NOT_REPEATED", message: expect.stringContaining("once_only") },
      ]);
      expect(workers.runs.begun).toEqual([]);
      expect(workers.broker.deadLetters).toEqual([]);
      await worker[Symbol.asyncDispose]();
      await workers.expectAllSettled("once_only");
    },
  );
});

test(
  "the same request, published twice, has one effect and two answers when it must not run twice",
  { tags: ["full", "promise-B5"] },
  async () => {
    const workers = await MemoryWorkers.prepare({ maxUnsettled: 1 });
    await workers.startWorker(1);
    await workers.startWorker(1);
    workers.publish("once_only", "call", "call");
    await workers.runs.haveBegun("call");
    workers.runs.finish("call");
    await vi.waitFor(
      () => expect(workers.answers.get("call")).toMatchObject([done, done]),
      patience,
    );
    expect(workers.runs.begun).toEqual(["call"]);
  },
);

describe("a call that goes on in its worker while its connection is lost", () => {
  const goesOn = async (tool: AnnouncingTool): Promise<void> => {
    const workers = await MemoryWorkers.prepare();
    const gate = Promise.withResolvers<void>();
    await workers.startWorker(1, reconnectingAfter(workers.broker, gate.promise));
    workers.publish(tool, "call");
    await workers.runs.haveBegun("call");
    const other = await workers.startWorker(
      1,
      tellingOfDeliveries(workers.broker, () => gate.resolve()),
    );
    workers.broker.dropSessions();
    await gate.promise;
    workers.runs.finish("call");
    await says(other, "call.answered_elsewhere");
    await workers.answered("call");
    expect(workers.answers.get("call")).toMatchObject([done]);
    expect(workers.runs.begun).toEqual(["call"]);
  };
  const settled = "is answered once, and settled by the worker that gets it then, when it is %s";
  test.for(["repeatable", "once_only"] as const)(settled, { tags: "full" }, goesOn);
});

describe("a call that nobody lives to answer", () => {
  test(
    "is answered POISONED and put aside one delivery before the broker's last, without being run",
    { tags: "promise-B6" },
    async () => {
      const workers = await MemoryWorkers.prepare({ maxDeliveries: 4 });
      const taken = workers.takeAndDie("repeatable");
      workers.publish("repeatable", "call");
      await taken;
      await workers.takeAndDie("repeatable");
      expect(workers.broker.deadLetters).toEqual([]);
      await workers.startWorker(1);
      await workers.answered("call");
      expect(workers.answers.get("call")).toMatchObject([
        { kind: "error", code: "POISONED", message: expect.stringContaining("3 times") },
      ]);
      await vi.waitFor(
        () =>
          expect(workers.broker.deadLetters).toMatchObject([
            { topic: invokeTopic(namespace, "repeatable") },
          ]),
        patience,
      );
      expect(workers.runs.begun).toEqual([]);
    },
  );

  test("still runs at the delivery before", { tags: "full" }, async () => {
    const workers = await MemoryWorkers.prepare({ maxDeliveries: 4 });
    const taken = workers.takeAndDie("repeatable");
    workers.publish("repeatable", "call");
    await taken;
    await workers.startWorker(1);
    await workers.runs.haveBegun("call");
    workers.runs.finish("call");
    await workers.answered("call");
    expect(workers.answers.get("call")).toMatchObject([done]);
  });
});

describe("a call that waited in its queue", () => {
  test("for longer than its agent does is answered as timed out and not run", async () => {
    const workers = await MemoryWorkers.prepare();
    const { worker } = await workers.startWorker(1);
    const timestamp = Date.now() - 41_000;
    workers.publishCall("repeatable", "stale", { timeoutSeconds: 30 }, { timestamp });
    await workers.answered("stale");
    const message = expect.stringMatching(/^The call was \d+ ms old when .* clocks of the sender/);
    expect(workers.answers.get("stale")).toMatchObject([{ kind: "timed-out", message }]);
    expect(await worker.drain(longMs)).toMatchObject(nothingLeft);
    expect(workers.runs.begun).toEqual([]);
  });

  type Row = readonly [what: string, properties: Readonly<Record<string, string | number>>];
  const runs = async ([, properties]: Row): Promise<void> => {
    const workers = await MemoryWorkers.prepare();
    await workers.startWorker(1);
    workers.publishCall("repeatable", "fresh", {}, properties);
    await workers.runs.haveBegun("fresh");
    workers.runs.finish("fresh");
    await workers.answered("fresh");
    expect(workers.answers.get("fresh")).toMatchObject([done]);
  };
  const seconds: Row = ["seconds", { timestamp: Math.floor(Date.now() / 1000) }];
  const others: readonly Row[] = [
    ["nothing", {}],
    ["no time", { timestamp: "yesterday" }],
  ];
  test.for([seconds])("runs when its timestamp says %s", runs);
  test.for(others)("runs when its timestamp says %s", { tags: "full" }, runs);
});

describe("a worker", () => {
  test(
    "whose slots are busy takes one call more, and leaves the others to others",
    { tags: "promise-B7" },
    async () => {
      const workers = await MemoryWorkers.prepare({ maxUnsettled: 2 });
      const busy = await workers.startWorker(1);
      workers.publish("repeatable", "running", "next", "other 1", "other 2");
      await workers.runs.haveBegun("running");
      await says(busy, "call.no_free_slot");
      await workers.startWorker(2);
      await workers.runs.haveBegun("running", "other 1", "other 2");
      workers.runs.finish("other 1", "other 2");
      await workers.answered("other 1", "other 2");
      workers.runs.finish("running");
      await workers.runs.haveBegun("running", "other 1", "other 2", "next");
      workers.runs.finish("next");
      await workers.answered("running", "other 1", "other 2", "next");
    },
  );

  test("settles a call whose agent is gone, and says so", async () => {
    const workers = await MemoryWorkers.prepare();
    const started = await workers.startWorker(1);
    workers.publishCall("repeatable", "call", {}, { replyTo: "nobody/is/here" });
    await workers.runs.haveBegun("call");
    workers.runs.finish("call");
    await says(started, "answer.unroutable");
    expect(await started.worker.drain(longMs)).toMatchObject(nothingLeft);
    await started.worker[Symbol.asyncDispose]();
    await workers.expectAllSettled("repeatable");
  });
});
