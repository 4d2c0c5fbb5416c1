/**
 * A worker that drains while a tool waits for another one, and calls that come again.
 * test/full/worker/shutdown-steps.test.ts and killed.test.ts have the same of whole processes.
 */
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test, vi } from "vitest";
import type { Worker } from "../../../worker/worker.ts";
import { patience } from "../../support/patience.ts";
import { ToolRuns, announcingTool } from "../../support/workers/announcing-tool.ts";
import { MemoryWorkers } from "../../support/workers/memory-workers.ts";
import { startRig } from "../../support/workers/rig.ts";
import type { AnnouncingTool } from "../../support/workers/worker-place.ts";

const longMs = 600_000;

const twice = `
async def twice(ctx, port):
    return {"told": [
        (await ctx.tools.call("announces", {"port": port, "name": name}))["told"]
        for name in ("first", "second")
    ]}
`;

/** Calls a tool that calls another, which has begun and waits. */
async function calling(tool: AnnouncingTool, inner: AnnouncingTool) {
  const workers = await MemoryWorkers.prepare();
  const started = await workers.startWorker(1);
  workers.publishCall(tool, "call", { args: { tool: inner } });
  await workers.runs.haveBegun("call");
  return { workers, ...started };
}

/** Stops a worker that has no time to finish; nothing of its calls is left. */
async function stop({ base, runs }: MemoryWorkers, worker: Worker): Promise<void> {
  await worker.drain(0);
  await vi.waitFor(() => expect(runs.alive).toBe(0), patience);
  await worker[Symbol.asyncDispose]();
  expect(await readdir(join(base, "work"))).toEqual([]);
}

describe("a drain", { tags: "promise-G4" }, () => {
  test("lets a call go on to call tools", async () => {
    const runs = await ToolRuns.listen();
    await using rig = await startRig({
      tools: {
        announces: {
          module: "announcing",
          function: "announces",
          network: "host",
          allowed_callers: ["programmatic"],
        },
        twice: { module: "twice", function: "twice", gateway: { tools: ["announces"] } },
      },
      files: { [announcingTool.file]: announcingTool.source, "twice.py": twice },
      environment: { SANDBOX_MAX_CONCURRENT: "1" },
    });
    const answer = rig.call("twice", { port: runs.port });
    await runs.haveBegun("first");
    const drained = rig.worker.drain(longMs);
    runs.finish("first");
    await runs.haveBegun("first", "second");
    runs.finish("second");
    expect(await answer).toMatchObject({ kind: "success", toolResult: { told: ["done", "done"] } });
    expect(await drained).toEqual({ finished: 1, requeued: 0, abandoned: 0 });
  });

  const elsewhere = "ends the called tool at its deadline, and another worker runs the call";
  test(elsewhere, { tags: "full" }, async () => {
    const { workers, worker } = await calling("passes_on", "repeatable");
    await stop(workers, worker);
    await workers.startWorker(1);
    await workers.runs.haveBegun("call", "call");
    workers.runs.finish();
    await workers.answered("call");
    expect(workers.answers.get("call")).toMatchObject([
      { kind: "success", toolResult: { inner: { told: "done" } } },
    ]);
  });

  test.for(["passes_on_once", "passes_on_again"] as const)(
    "answers a call that has started a tool that must not run twice: %s",
    { tags: "promise-B5" },
    async (tool) => {
      const { workers, worker, said } = await calling(tool, "once_only");
      await stop(workers, worker);
      await workers.answered("call");
      expect(workers.answers.get("call")).toMatchObject([
        { kind: "error", code: "SANDBOX_FAILED", message: expect.stringContaining("forbids") },
      ]);
      expect(said().indexOf('"tool_call.ended"')).toBeLessThan(said().indexOf('"call.failed"'));
      await workers.expectAllSettled(tool);
      expect(workers.runs.begun).toEqual(["call"]);
    },
  );
});

test(
  "a call that may have run before starts no tool that must not run twice",
  { tags: "promise-B5" },
  async () => {
    const workers = await MemoryWorkers.prepare();
    const taken = workers.takeAndDie("passes_on_again");
    workers.publishCall("passes_on_again", "call", { args: { tool: "once_only" } });
    await taken;
    // Without a shared store the worker cannot know whether it ran.
    await workers.startWorkerOn(workers.broker, 1, { ARTIFACT_SERVICE_TYPE: "memory" });
    await workers.answered("call");
    expect(workers.answers.get("call")).toMatchObject([
      { kind: "success", toolResult: { code: "NOT_REPEATED" } },
    ]);
    expect(workers.runs.begun).toEqual([]);
  },
);
