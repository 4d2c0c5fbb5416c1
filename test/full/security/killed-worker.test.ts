/**
 * A worker that is killed leaves no tool running, at whatever step of a call it dies, and the next
 * one leaves nothing of it at all.
 *
 * @module-tag full
 */
import { constants } from "node:fs";
import { open, readFile, readdir } from "node:fs/promises";
import { basename, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { beforeEach, describe, expect, test, vi } from "vitest";
import type { HoldPoint } from "../../support/sandboxes/held-sandboxes.ts";
import type { WorkerProcess } from "../../support/workers/worker-process.ts";
import { WorkerSteps, callSteps, patience } from "../../support/workers/worker-steps.ts";

let steps: WorkerSteps;

beforeEach(async () => {
  steps = await WorkerSteps.prepare();
});

async function kill(worker: WorkerProcess): Promise<void> {
  worker.child.kill("SIGKILL");
  await worker.exited;
}

/** The process beside a worker that ends its sandboxes after it. */
async function guardOf({ child }: WorkerProcess): Promise<number> {
  const children = await readFile(`/proc/${child.pid}/task/${child.pid}/children`, "utf8");
  for (const pid of children.split(" ").filter(Boolean)) {
    const commandLine = await readFile(`/proc/${pid}/cmdline`, "utf8");
    if (commandLine.split("\0").includes("str-orphans")) return Number(pid);
  }
  throw new Error("the worker has no guard");
}

/** Undefined for a process that is gone. */
async function parentOf(pid: number): Promise<number | undefined> {
  const status = await readFile(`/proc/${pid}/status`, "utf8").catch(() => undefined);
  if (status === undefined) return undefined;
  return Number(/^PPid:\s+(\d+)$/m.exec(status)?.[1]);
}

/** Reads, and never empties, the status pipes of every call. */
async function openStatusPipes(): Promise<AsyncDisposableStack> {
  const pipes = new AsyncDisposableStack();
  const paths = await readdir(steps.workBase, { recursive: true });
  for (const path of paths.filter((candidate) => basename(candidate) === "status.pipe")) {
    pipes.use(await open(join(steps.workBase, path), constants.O_RDONLY | constants.O_NONBLOCK));
  }
  return pipes;
}

/** Waits until nothing lives of any sandbox of the workers so far. */
async function nothingIsLeft(): Promise<void> {
  await vi.waitFor(async () => {
    expect(await steps.watch.processes()).toEqual([]);
    expect(steps.runs.alive).toBe(0);
  }, patience);
}

/** A worker with a sandbox that stands still while it is made. */
async function workerHeldAt(point: HoldPoint): Promise<WorkerProcess> {
  const worker = await steps.startWorker();
  await steps.sandboxes.holdAt(point);
  await steps.call("call");
  await steps.watch.reaches(point);
  return worker;
}

/**
 * Workers of other tests end what dead ones have left in control groups, when they start; this
 * one's then, too.
 */
const maxAttempts = 5;

const points = [
  ["before bubblewrap runs", "unmade"],
  ["when its first process is born", "born"],
  ["when its mounts are made", "mounted"],
] as const;

describe(
  "of a worker that is killed while a sandbox is made, nothing is left a moment later,",
  { tags: "promise-E6" },
  () => {
    test.for(points)("%s", async ([, point]) => {
      await kill(await workerHeldAt(point));
      await nothingIsLeft();
      expect(steps.runs.begun).toEqual([]);
    });

    test("not even a tool that has begun because its worker was still dying", async () => {
      for (let attempt = 1; steps.runs.begun.length === 0; attempt++) {
        expect(attempt).toBeLessThanOrEqual(maxAttempts);
        const worker = await workerHeldAt("mounted");
        const guard = await guardOf(worker);
        process.kill(guard, "SIGSTOP");
        // For the tool's side there is a worker as long as somebody reads the pipe.
        await using _reader = await openStatusPipes();
        const first = (await steps.watch.processes()).find(({ isInside }) => isInside)!;
        const bubblewrap = await parentOf(first.pid);
        await kill(worker);
        // A parent that is still dying would take along who asks for that now.
        await vi.waitFor(
          async () => expect(await parentOf(first.pid)).not.toBe(bubblewrap),
          patience,
        );
        await steps.sandboxes.release();
        await vi.waitFor(async () => {
          const isGone = (await steps.watch.processes()).length === 0;
          expect(isGone || steps.runs.begun.length > 0).toBe(true);
        }, patience);
        process.kill(guard, "SIGCONT");
        await nothingIsLeft();
      }
    });
  },
);

describe("of a worker that is killed together with its guard while a sandbox is made,", () => {
  /**
   * Kills both. Whether one process is left then, which nobody ends but a worker of another test
   * that starts just now.
   */
  async function killBoth(worker: WorkerProcess): Promise<boolean> {
    const guard = await guardOf(worker);
    // A worker that is not stopped may start another guard before it is killed.
    worker.child.kill("SIGSTOP");
    process.kill(guard, "SIGKILL");
    await kill(worker);
    const one = [expect.objectContaining({ program: "bwrap" })];
    let isLeft = true;
    await vi.waitFor(async () => {
      const left = await steps.watch.processes();
      isLeft = left.length > 0;
      expect(left).toEqual(isLeft ? one : []);
    }, patience);
    return isLeft;
  }

  /** Leaves a process of a sandbox that stands still while it is made. */
  async function leaveOneAt(point: HoldPoint): Promise<void> {
    for (let attempt = 1; !(await killBoth(await workerHeldAt(point))); attempt++) {
      expect(attempt).toBeLessThan(maxAttempts);
      await steps.sandboxes.forget();
    }
  }

  test.for(points)(
    "the next worker leaves nothing, %s",
    { tags: "promise-E6" },
    async ([, point]) => {
      await leaveOneAt(point);
      await steps.sandboxes.forget();
      await steps.startWorker();
      expect(steps.runs.begun).toEqual([]);
    },
  );

  test("no tool begins, though its sandbox comes about", { tags: "promise-E6" }, async () => {
    await leaveOneAt("mounted");
    await steps.sandboxes.release();
    await nothingIsLeft();
    expect(steps.runs.begun).toEqual([]);
  });
});

describe(
  "of a worker that is killed no tool goes on, and the next one leaves no directory of it,",
  { tags: "promise-E6" },
  () => {
    test.for(Object.entries(callSteps))("when a call %s", async ([, bringTo]) => {
      const worker = await steps.startWorker();
      await bringTo(steps, worker);
      await kill(worker);
      await nothingIsLeft();
      steps.outlet.release();
      await steps.startWorker();
    });

    test("at any time in the first milliseconds of a sandbox", async () => {
      let worker = await steps.startWorker();
      for (const delayMs of [0, 2, 4, 7, 12, 20]) {
        await steps.call(`after ${delayMs} ms`);
        await worker.says("tool.started");
        // Spreads the kills over the making of the sandbox; nothing is waited for.
        await sleep(delayMs);
        await kill(worker);
        await nothingIsLeft();
        worker = await steps.startWorker();
      }
    });
  },
);
