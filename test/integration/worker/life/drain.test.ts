/**
 * A drain loses no call: what reached the worker's queue is answered, and what comes later is left
 * to others.
 */
import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, test, vi } from "vitest";
import { DevClient } from "../../../support/brokers/dev-client.ts";
import { type DevBroker, startDevBroker } from "../../../../harness/dev-broker/dev-broker.ts";
import { encodeRequest } from "../../../../harness/messages.ts";
import { invokeTopic, responseTopic } from "../../../../worker/protocol/topics.ts";
import {
  type Rig,
  manifestText,
  namespace,
  reachableDirectory,
  startRig,
  workerEnvironment,
} from "../../../support/workers/rig.ts";
import { WorkerProcess } from "../../../support/workers/worker-process.ts";
import { patience } from "../../../support/patience.ts";
import { ToolRuns, announcingTool } from "../../../support/workers/announcing-tool.ts";

const tools = { well: { function: "well" }, sleeps: { function: "sleeps" } };
const fixtureTools = fileURLToPath(new URL("../../../fixtures/tools/", import.meta.url));
const soon = (): AbortSignal => AbortSignal.timeout(30_000);

describe("a drain", () => {
  const servedTopics = ({ broker }: Rig) =>
    broker.subscriptions
      .flatMap(({ patterns }) => patterns)
      .filter((pattern) => pattern.startsWith(invokeTopic(namespace, "")));

  test("runs and answers a call that comes while the last RECEIVE is in progress", async () => {
    await using rig = await startRig({ tools });
    // Once this is answered, nothing is in flight and the next RECEIVE has just begun.
    await rig.agent.whenServed("well", soon());
    const drained = rig.worker.drain(30_000);
    expect(await rig.call("well", { message: "late" })).toMatchObject({
      kind: "success",
      toolResult: { said: "late" },
    });
    expect(await drained).toMatchObject({ abandoned: 0 });
  });

  test(
    "ends the subscriptions while calls still run, so that no call is queued for nobody",
    { tags: "full" },
    async () => {
      const runs = await ToolRuns.listen();
      await using rig = await startRig({
        tools: {
          well: { function: "well" },
          announces: { module: "announcing", function: "announces", network: "host" },
        },
        files: { [announcingTool.file]: announcingTool.source },
      });
      expect(servedTopics(rig)).toHaveLength(2);
      const running = rig.call("announces", { port: runs.port });
      await runs.haveBegun("run");
      const drained = rig.worker.drain(30_000);
      await vi.waitFor(() => expect(servedTopics(rig)).toEqual([]), patience);
      runs.finish();
      expect(await running).toMatchObject({ kind: "success", toolResult: { told: "done" } });
      expect(await drained).toEqual({ finished: 1, requeued: 0, abandoned: 0 });
    },
  );

  test("with nothing to do ends at once when the broker is away", async () => {
    await using rig = await startRig({ tools });
    await rig.broker[Symbol.asyncDispose]();
    expect(await rig.worker.drain(2 ** 31 - 1)).toEqual({
      finished: 0,
      requeued: 0,
      abandoned: 0,
    });
  });
});

describe("calls that were published just before SIGTERM", () => {
  const count = 30;

  /**
   * Publishes calls to a worker that is held meanwhile, and terminates it. The answers by topic.
   */
  async function answersOf(
    worker: WorkerProcess,
    broker: DevBroker,
  ): Promise<ReadonlyMap<string, object>> {
    await using client = await DevClient.connect(
      {
        host: broker.host,
        port: broker.port,
        name: "raw",
        patterns: [responseTopic(namespace, "raw", ">")],
      },
      soon(),
    );
    worker.child.kill("SIGSTOP");
    for (let n = 0; n < count; n++) {
      const replyTo = responseTopic(namespace, "raw", `${n}`);
      const request = encodeRequest(`${n}`, "raw", { tool: "well", timeoutSeconds: 60 });
      await client.publish(invokeTopic(namespace, "well"), request, { replyTo }, soon());
    }
    worker.child.kill("SIGTERM");
    worker.child.kill("SIGCONT");
    const answers = new Map<string, object>();
    for await (const { topic, payload } of client.messages(AbortSignal.timeout(40_000))) {
      answers.set(topic, JSON.parse(Buffer.from(payload).toString()) as object);
      if (answers.size === count) break;
    }
    return answers;
  }

  test.each([
    ["are run and answered", 30, "result"],
    ["are answered also when there is no time to run them", 0, "error"],
  ])("%s", { tags: "full" }, async (_, drainTimeoutSeconds, member) => {
    await using owned = new AsyncDisposableStack();
    const base = await reachableDirectory();
    owned.defer(() => rm(base, { recursive: true, force: true }));
    const broker = owned.use(await startDevBroker());
    const manifestPath = join(base, "manifest.yaml");
    await writeFile(manifestPath, manifestText(tools));
    const worker = owned.use(
      new WorkerProcess({
        ...workerEnvironment(broker, base, manifestPath, fixtureTools),
        SANDBOX_MAX_CONCURRENT: "4",
        // Fewer than there are calls, so that some of them still wait in the broker.
        SANDBOX_MAX_QUEUED: "4",
        DRAIN_TIMEOUT_SECONDS: `${drainTimeoutSeconds}`,
      }),
    );
    await worker.says("worker.ready");
    const answers = await answersOf(worker, broker);
    expect(answers.get(responseTopic(namespace, "raw", "0"))).toHaveProperty(member);
    expect(await worker.exited).toEqual({ code: 0, signal: null });
  });
});
