/**
 * Two workers on a broker that redelivers: what one gives up when it stops, the other runs, and
 * nothing is run or answered more often than it may be.
 */
import { join } from "node:path";
import { beforeEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { SandboxWatch } from "../../../support/sandboxes/held-sandboxes.ts";
import { MemoryWorkers } from "../../../support/workers/memory-workers.ts";
import type { StartedWorker } from "../../../support/workers/worker-place.ts";

const patience = { timeout: 20_000, interval: 20 };
const longMs = 600_000;

let workers: MemoryWorkers;
let runs: MemoryWorkers["runs"];
let answers: MemoryWorkers["answers"];

beforeEach(async () => {
  workers = await MemoryWorkers.prepare();
  ({ runs, answers } = workers);
});

const startWorker = (maxConcurrent: number) => workers.startWorker(maxConcurrent);
const publish: MemoryWorkers["publish"] = (tool, ...names) => workers.publish(tool, ...names);
const answered = (...names: string[]) => workers.answered(...names);

const done = { kind: "success", toolResult: { told: "done" } };
const stoppedOnceOnly = {
  kind: "error",
  code: "SANDBOX_FAILED",
  message:
    "The tool was stopped because the worker is shutting down. Its manifest entry forbids to run the call again",
};

describe("a worker that drains", () => {
  test(
    "gives calls that wait for a slot to another at once, and finishes what runs",
    { tags: "full" },
    async () => {
      const former = await startWorker(1);
      publish("repeatable", "running", "waiting");
      await runs.haveBegun("running");
      await vi.waitFor(() => expect(former.said()).toContain("call.no_free_slot"), patience);
      await startWorker(4);
      const drained = former.worker.drain(longMs);
      await runs.haveBegun("running", "waiting");
      runs.finish("running", "waiting");
      expect(await drained).toEqual({ finished: 1, requeued: 1, abandoned: 0 });
      await answered("running", "waiting");
      for (const answer of answers.values()) expect(answer).toMatchObject([done]);
    },
  );

  test(
    "gives what waits for a slot to another also when it must not run twice: no worker began it",
    { tags: "full" },
    async () => {
      const former = await startWorker(1);
      publish("once_only", "running", "waiting");
      await runs.haveBegun("running");
      await vi.waitFor(() => expect(former.said()).toContain("call.no_free_slot"), patience);
      const drained = former.worker.drain(longMs);
      await startWorker(1);
      await runs.haveBegun("running", "waiting");
      runs.finish("running", "waiting");
      expect(await drained).toEqual({ finished: 1, requeued: 1, abandoned: 0 });
      await answered("running", "waiting");
      for (const answer of answers.values()) expect(answer).toMatchObject([done]);
    },
  );

  test(
    "leaves calls that wait for a slot in the broker when there is no other worker yet",
    { tags: "full" },
    async () => {
      const former = await startWorker(1);
      publish("repeatable", "running", "waiting");
      await runs.haveBegun("running");
      const drained = former.worker.drain(longMs);
      runs.finish("running");
      expect(await drained).toEqual({ finished: 1, requeued: 1, abandoned: 0 });
      await former.worker[Symbol.asyncDispose]();
      await startWorker(1);
      await runs.haveBegun("running", "waiting");
      runs.finish("waiting");
      await answered("running", "waiting");
    },
  );

  test(
    "stops at its deadline what another may run again, which then does",
    { tags: "full" },
    async () => {
      const former = await startWorker(2);
      publish("repeatable", "call");
      await runs.haveBegun("call");
      await startWorker(2);
      expect(await former.worker.drain(0)).toEqual({ finished: 0, requeued: 0, abandoned: 1 });
      await runs.haveBegun("call", "call");
      runs.finish("call");
      await answered("call");
      expect(answers.get("call")).toMatchObject([done]);
      expect(former.said()).toMatch(/"event":"call.cancelled".*"started":true/);
    },
  );

  test(
    "stops at its deadline what must not run again, and answers it",
    { tags: "promise-B5" },
    async () => {
      const former = await startWorker(2);
      publish("once_only", "call");
      await runs.haveBegun("call");
      const other = await startWorker(2);
      await former.worker.drain(0);
      await answered("call");
      // A later call is the next that the broker hands out.
      publish("once_only", "later");
      await runs.haveBegun("call", "later");
      runs.finish("later");
      await answered("call", "later");
      expect(await other.worker.drain(longMs)).toMatchObject({ requeued: 0, abandoned: 0 });
      expect(Object.fromEntries(answers)).toMatchObject({ call: [stoppedOnceOnly], later: [done] });
    },
  );

  test("gives everything up at once when it is hurried", { tags: "full" }, async () => {
    const former = await startWorker(1);
    publish("repeatable", "running", "waiting");
    await runs.haveBegun("running");
    const other = await startWorker(2);
    void former.worker.drain(longMs);
    former.worker.shutdownNow();
    await former.worker[Symbol.asyncDispose]();
    await runs.haveBegun("running", "running", "waiting");
    runs.finish("running", "waiting");
    await answered("running", "waiting");
    expect(await other.worker.drain(longMs)).toMatchObject({ requeued: 0, abandoned: 0 });
    for (const answer of answers.values()) expect(answer).toMatchObject([done]);
  });
});

describe("a call that its worker gives up is run by another, and answered once, when it", () => {
  const saysOf = async ({ said }: StartedWorker, event: string): Promise<void> => {
    await vi.waitFor(() => expect(said()).toContain(event), { ...patience, interval: 1 });
  };

  type Step = readonly [name: string, bringTo: (former: StartedWorker) => Promise<void>];
  const steps: readonly Step[] = [
    [
      "had its sandbox made",
      async () => {
        const watch = new SandboxWatch(join(workers.base, "work"));
        await watch.meet();
        await workers.sandboxes.holdAt("born");
        publish("repeatable", "call");
        await watch.reaches("born");
        await workers.sandboxes.forget();
      },
    ],
    [
      "got its inputs",
      async (former) => {
        const bytes = new Uint8Array(5_000_000);
        const input = { filename: "in.bin", version: 0, mimeType: "text/plain", bytes };
        workers.publishCall("repeatable", "call", { preloaded: new Map([["input", input]]) });
        await saysOf(former, "call.staging_inputs");
      },
    ],
    [
      "had its outputs saved",
      async (former) => {
        workers.publishCall("repeatable", "call", { args: { saved_bytes: 50_000_000 } });
        await runs.haveBegun("call");
        runs.finish();
        await saysOf(former, "tool.ended");
      },
    ],
  ];
  const isAnsweredOnce = async ([, bringTo]: Step): Promise<void> => {
    const former = await startWorker(1);
    await bringTo(former);
    await former.worker.drain(0);
    await former.worker[Symbol.asyncDispose]();
    const next = await startWorker(1);
    const finishing = setInterval(() => runs.finish(), 20);
    onTestFinished(() => clearInterval(finishing));
    await answered("call");
    expect(await next.worker.drain(longMs)).toMatchObject({ requeued: 0, abandoned: 0 });
    expect(answers.get("call")).toMatchObject([done]);
    expect(runs.begun.length).toBeLessThanOrEqual(2);
  };
  test.for(steps)("%s", { tags: "full" }, isAnsweredOnce);
});

test(
  "a worker that is disposed of without a drain gives its calls to another",
  { tags: "full" },
  async () => {
    const former = await startWorker(1);
    publish("repeatable", "running", "waiting");
    await runs.haveBegun("running");
    await former.worker[Symbol.asyncDispose]();
    expect(answers.size).toBe(0);
    await startWorker(2);
    await runs.haveBegun("running", "running", "waiting");
    runs.finish("running", "waiting");
    await answered("running", "waiting");
  },
);

test(
  "no call is lost, answered twice or run too often while workers come and go",
  { tags: "full" },
  async () => {
    const [repeatable, onceOnly]: [string[], string[]] = [[], []];
    const finishing = setInterval(() => runs.finish(), 20);
    onTestFinished(() => clearInterval(finishing));
    let current = await startWorker(3);
    for (const [round, deadlineMs] of [0, longMs, 0, longMs].entries()) {
      const names = Array.from({ length: 6 }, (_, n) => `${round}.${n}`);
      const begunBefore = runs.begun.length;
      const next = await startWorker(3);
      for (const name of names) {
        publish("repeatable", `again ${name}`);
        publish("once_only", `once ${name}`);
        repeatable.push(`again ${name}`);
        onceOnly.push(`once ${name}`);
      }
      await vi.waitFor(() => expect(runs.begun.length).toBeGreaterThan(begunBefore), patience);
      await current.worker.drain(deadlineMs);
      await current.worker[Symbol.asyncDispose]();
      current = next;
    }
    await answered(...repeatable, ...onceOnly);
    await current.worker.drain(longMs);
    for (const name of repeatable) expect([name, answers.get(name)]).toMatchObject([name, [done]]);
    for (const name of onceOnly) {
      const { length: runCount } = runs.begun.filter((begun) => begun === name);
      expect([name, answers.get(name)]).toMatchObject([name, [{}]]);
      expect(runCount).toBeLessThanOrEqual(1);
    }
  },
);
