/**
 * A worker that is killed while a tool waits for another one: the call is answered once by the next
 * worker, and what must not run twice does not.
 *
 * @module-tag full
 */
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { responseTopic } from "../../../worker/protocol/topics.ts";
import { connectAmqpPeer } from "../../conformance/peers/amqp-peer.ts";
import { patience } from "../../support/patience.ts";
import { SandboxWatch } from "../../support/sandboxes/held-sandboxes.ts";
import { PeerWorkers } from "../../support/workers/peer-workers.ts";
import type { AnnouncingTool } from "../../support/workers/worker-place.ts";
import { WorkerProcess } from "../../support/workers/worker-process.ts";
import { newNamespace, surround, useRabbitMQ } from "../amqp/node.ts";

const node = useRabbitMQ();

describe("a call whose worker is killed while it waits for another tool", () => {
  const ran = { inner: { told: "done" } };
  const notRepeated = { kind: "error", code: "NOT_REPEATED" };

  test.for<readonly [string, AnnouncingTool, string, number, object]>([
    [
      "runs again with it, where both may",
      "passes_on",
      "repeatable",
      2,
      { kind: "success", toolResult: ran },
    ],
    ["does not run again, where the other must not", "passes_on_once", "once_only", 1, notRepeated],
    [
      "runs again without it, where only the other must not",
      "passes_on_again",
      "once_only",
      1,
      { kind: "success", toolResult: { code: "NOT_REPEATED" } },
    ],
  ])("%s", { tags: ["promise-B5", "promise-E6"] }, async ([, outer, tool, runs, answer]) => {
    const namespace = newNamespace();
    const peer = await connectAmqpPeer(node().url, namespace);
    onTestFinished(() => peer[Symbol.asyncDispose]());
    const workers = await PeerWorkers.prepare(namespace, peer);
    const workBase = join(workers.base, "work");
    const environment = {
      ...(await surround(node(), namespace)),
      MANIFEST_PATH: join(workers.base, "manifest.yaml"),
      TOOLS_PYTHON_DIR: join(workers.base, "tools"),
      SANDBOX_WORK_DIR: workBase,
      ARTIFACT_SERVICE_TYPE: "filesystem",
      ARTIFACT_BASE_PATH: join(workers.base, "artifacts"),
    };
    const watch = new SandboxWatch(workBase);
    const begun = Array.from({ length: runs }, () => "call");
    {
      await using former = new WorkerProcess({ ...environment, SAM_WORKER_ID: "former" });
      await former.says("worker.ready");
      await watch.meet();
      await workers.publish(outer, "call", { args: { tool } });
      await workers.runs.haveBegun("call");
      expect((await watch.processes()).length).toBeGreaterThan(0);
    }
    await vi.waitFor(async () => expect(await watch.processes()).toEqual([]), patience);
    await using next = new WorkerProcess({ ...environment, SAM_WORKER_ID: "next" });
    await next.says("worker.ready");
    await watch.meet();
    expect(await readdir(workBase)).toHaveLength(1);
    await workers.runs.haveBegun(...begun);
    workers.runs.finish();
    await workers.answered("call");
    next.child.kill("SIGTERM");
    expect(await next.exited).toEqual({ code: 0, signal: null });
    // What the worker has published comes before this.
    await peer.publish(
      responseTopic(namespace, "agent", "last"),
      '{"jsonrpc":"2.0","id":"last","result":{}}',
      {},
    );
    await workers.answered("call", "last");
    expect(workers.answers.get("call")).toMatchObject([answer]);
    expect(workers.runs.begun).toEqual(begun);
    expect(workers.runs.alive).toBe(0);
    expect(await watch.processes()).toEqual([]);
    expect(await readdir(workBase)).toEqual([]);
  });
});
