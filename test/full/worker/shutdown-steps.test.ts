/**
 * SIGTERM at every step of a call: each call is answered once, and neither a process nor a
 * directory is left.
 *
 * @module-tag full
 */
import { readdir } from "node:fs/promises";
import { describe, expect, test } from "vitest";
import type { Answer } from "../../../harness/messages.ts";
import type { HoldPoint } from "../../support/sandboxes/held-sandboxes.ts";
import type { WorkerProcess } from "../../support/workers/worker-process.ts";
import { type Step, WorkerSteps, callSteps } from "../../support/workers/worker-steps.ts";

/** What a test has to know of an answer: the code of an error, or its kind. */
const gist = (answer: Answer): string => (answer.kind === "error" ? answer.code : answer.kind);

/**
 * Waits for the end of a worker that was told to end. The answers' gists, by the names of their
 * calls.
 */
async function endOf(
  steps: WorkerSteps,
  worker: WorkerProcess,
  exitCode: number,
): Promise<Readonly<Record<string, readonly string[]>>> {
  expect(await worker.exited).toEqual({ code: exitCode, signal: null });
  expect(await steps.watch.processes()).toEqual([]);
  expect(steps.runs.alive).toBe(0);
  expect(await readdir(steps.workBase)).toEqual([]);
  const answers = [...(await steps.allAnswers())];
  return Object.fromEntries(answers.map(([name, all]) => [name, all.map(gist)]));
}

/** A call whose sandbox stands still while it is made. */
const heldAt =
  (point: HoldPoint): Step =>
  async (steps) => {
    await steps.sandboxes.holdAt(point);
    await steps.call("call");
    await steps.watch.reaches(point);
  };

describe("SIGTERM, with no time to finish anything, when a call", { tags: "promise-E6" }, () => {
  const notBegun = "TOOL_NOT_AVAILABLE";
  const begun = "SANDBOX_FAILED";
  const finished = "success";

  test.for<readonly [string, Step, Readonly<Record<string, string | readonly string[]>>]>([
    ["waits for a slot", callSteps["waits for a slot"], { other: begun, call: notBegun }],
    // Copying is over at some time, and so is saving.
    ["gets its inputs", callSteps["gets its inputs"], { call: [notBegun, begun] }],
    ["has its sandbox made", callSteps["has its sandbox made"], { call: begun }],
    ["has no bubblewrap yet", heldAt("unmade"), { call: begun }],
    ["has the first process of its sandbox", heldAt("born"), { call: begun }],
    ["has its mounts", heldAt("mounted"), { call: begun }],
    ["runs", callSteps.runs, { call: begun }],
    ["waits for another tool", callSteps["waits for another tool"], { call: begun }],
    ["has its outputs saved", callSteps["has its outputs saved"], { call: [begun, finished] }],
    ["is answered", callSteps["is answered"], { call: finished }],
  ])("%s", async ([, bringTo, expected]) => {
    const steps = await WorkerSteps.prepare({ DRAIN_TIMEOUT_SECONDS: "0" });
    const worker = await steps.startWorker();
    await bringTo(steps, worker);
    worker.child.kill("SIGTERM");
    await worker.says("worker.draining");
    steps.outlet.release();
    const answers = await endOf(steps, worker, 0);
    expect(Object.keys(answers).toSorted()).toEqual(Object.keys(expected).toSorted());
    for (const [name, gists] of Object.entries(answers)) {
      expect(gists).toHaveLength(1);
      expect([expected[name]].flat()).toContain(gists[0]);
    }
  });
});

test("SIGTERM with time to finish has calls at every step run to their ends", async () => {
  const steps = await WorkerSteps.prepare({ SANDBOX_MAX_CONCURRENT: "3" });
  const worker = await steps.startWorker();
  for (const name of ["runs", "runs, too"]) await steps.call(name);
  await steps.runs.haveBegun("runs", "runs, too");
  await callSteps["gets its inputs"](steps, worker);
  await steps.call("waits");
  await worker.says("call.no_free_slot");
  worker.child.kill("SIGTERM");
  await worker.says("worker.draining");
  steps.runs.finish();
  await steps.runs.haveBegun("runs", "runs, too", "call", "waits");
  steps.runs.finish();
  expect(await endOf(steps, worker, 0)).toEqual({
    runs: ["success"],
    "runs, too": ["success"],
    call: ["success"],
    waits: ["success"],
  });
});

test("a second signal ends what runs and what waits at once, and both are answered", async () => {
  const steps = await WorkerSteps.prepare();
  const worker = await steps.startWorker();
  await callSteps["waits for a slot"](steps, worker);
  worker.child.kill("SIGTERM");
  await worker.says("worker.draining");
  worker.child.kill("SIGINT");
  expect(await endOf(steps, worker, 130)).toEqual({
    other: ["SANDBOX_FAILED"],
    call: ["TOOL_NOT_AVAILABLE"],
  });
});
