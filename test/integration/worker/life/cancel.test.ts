/**
 * A call that its caller cancels, on a whole worker: in each phase, and in each kind of sandbox.
 */
import { readdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import type { CallResult } from "../../../../harness/agent.ts";
import { s3Variables } from "../../../../harness/fakes/s3/variables.ts";
import type { ToolCall } from "../../../../harness/messages.ts";
import {
  breakingBeforeAnswer,
  reconnectingAfter,
  tellingOfDeliveries,
} from "../../../support/brokers/changed-broker.ts";
import { patience } from "../../../support/patience.ts";
import { MemoryWorkers } from "../../../support/workers/memory-workers.ts";
import { useCredentials, useFakeS3 } from "../../../support/s3.ts";
import { loggedFacts } from "../../../support/workers/kept-log.ts";
import {
  type Rig,
  type RigTool,
  nodeTool,
  reachableDirectory,
  startRig,
} from "../../../support/workers/rig.ts";
import { never, sourceOf } from "../../../unit/artifacts/fixtures.ts";
import { awaitedLater } from "../../../support/workers/awaited-later.ts";

const bucket = "artifacts";
const python = (name: string, more: Partial<RigTool> = {}): RigTool => ({
  module: "cancelled",
  function: name,
  ...more,
});

const stopped = {
  kind: "error",
  code: "CANCELLED",
  message: "The caller cancelled the call, and the tool was stopped",
};
const notStarted = {
  kind: "error",
  code: "CANCELLED",
  message: "The caller cancelled the call before the tool started",
};

/** Calls a tool, and cancels the call when the tool is ready. */
async function cancelReady(rig: Rig, tool: string) {
  const cancel = new AbortController();
  const statuses: string[] = [];
  const onStatus = (text: string): void => {
    statuses.push(text);
    if (text === "ready") cancel.abort();
  };
  const result = await call(rig, tool, cancel.signal, {}, onStatus);
  return { result, statuses };
}

function call(
  rig: Rig,
  tool: string,
  cancel: AbortSignal,
  more: Partial<ToolCall> = {},
  onStatus: (text: string) => void = () => undefined,
): Promise<CallResult> {
  const user = { userId: "user-42", sessionId: "web-1" };
  return awaitedLater(
    rig.agent.call({ tool, ...user, timeoutSeconds: 60, ...more }, { cancel, onStatus }),
  );
}

/** The sandbox of a call, as its answer reports it. */
function executionOf({ result }: { readonly result: CallResult }): unknown {
  if (result.kind !== "error") throw new Error(`the call is no error but ${result.kind}`);
  const { data } = result.response["error"] as { readonly data: { readonly execution: unknown } };
  return data.execution;
}

const s3 = useFakeS3({ buckets: [bucket] });

function stalledRig(tools: Readonly<Record<string, RigTool>>): Promise<Rig> {
  useCredentials(s3().accessKeyId, s3().secretAccessKey);
  return startRig({ tools, environment: s3Variables(s3(), bucket) });
}

describe("a running call that its caller cancels", () => {
  test(
    "lets the tool clean up, is answered once, and leaves its worker ready for others",
    { tags: "promise-R11" },
    async () => {
      const names = ["polls", "calls_back", "awaits"];
      await using rig = await startRig({
        tools: {
          ...Object.fromEntries(names.map((name) => [name, python(name, { idempotent: false })])),
          node: nodeTool("cancelled.ts", "awaits"),
          waits: python("waits"),
          well: { function: "well" },
        },
      });
      const all = await Promise.all([...names, "node"].map((name) => cancelReady(rig, name)));
      for (const { result, statuses } of all) {
        expect(result).toMatchObject(stopped);
        expect(statuses).toEqual(["ready", "cleaned up"]);
      }
      const waited = await cancelReady(rig, "waits");
      expect(waited.result).toMatchObject(stopped);
      expect(executionOf(waited)).toMatchObject({ start: "cold", profile: "standard" });
      expect(await rig.call("well")).toMatchObject({ kind: "success" });
      const ends = loggedFacts(rig.logLines, "call.cancelled");
      expect(ends).toHaveLength(5);
      for (const end of ends) expect(end).toMatchObject({ reason: "caller", started: true });
    },
  );

  test(
    "in a sandbox that waited for it ends that sandbox, and the next call gets another",
    { tags: "full" },
    async () => {
      const warm = { min: 1 };
      const [pool, template] = [
        { start: "pool", warm },
        { start: "template", warm },
      ] as const;
      await using rig = await startRig({
        isWarm: true,
        tools: {
          pool: python("polls", pool),
          template: python("polls", template),
          async_pool: python("awaits", pool),
          async_template: python("awaits", template),
          node: nodeTool("cancelled.ts", "awaits", pool),
          waits: python("waits", template),
        },
      });
      const startOf = (tool: string) => (tool.endsWith("template") ? "template" : "pool");
      for (const tool of ["pool", "template", "async_pool", "async_template", "node"]) {
        for (let n = 0; n < 2; n++) {
          await rig.untilWaiting(tool);
          const ended = await cancelReady(rig, tool);
          expect(ended.result).toMatchObject(stopped);
          expect(ended.statuses).toEqual(["ready", "cleaned up"]);
          expect(executionOf(ended)).toMatchObject({ start: startOf(tool) });
        }
      }
      await rig.untilWaiting("waits");
      const waited = await cancelReady(rig, "waits");
      expect(waited.result).toMatchObject(stopped);
      expect(executionOf(waited)).toMatchObject({ start: "template" });
    },
  );

  test("without isolation is stopped as well", { tags: "full" }, async () => {
    const directory = await reachableDirectory();
    onTestFinished(() => rm(directory, { recursive: true, force: true }));
    const profilesFile = join(directory, "profiles.yaml");
    const profiles = { debug: { extends: "standard", backend: "host" } };
    await writeFile(profilesFile, JSON.stringify({ version: 1, profiles }));
    const debug = { sandbox_profile: "debug" };
    await using rig = await startRig({
      tools: { polls: python("polls", debug), waits: python("waits", debug) },
      environment: { SANDBOX_ALLOW_UNSAFE: "1", SANDBOX_PROFILES_FILE: profilesFile },
    });
    const polled = await cancelReady(rig, "polls");
    expect(polled.result).toMatchObject(stopped);
    expect(polled.statuses).toEqual(["ready", "cleaned up"]);
    expect((await cancelReady(rig, "waits")).result).toMatchObject(stopped);
  });

  test(
    "is killed after the grace when its tool ignores that, however often it is cancelled",
    { tags: ["full", "promise-R11"] },
    async () => {
      await using rig = await startRig({ tools: { ignores: python("ignores") } });
      const cancelling = new AbortController();
      const onStatus = (): void => cancelling.abort();
      const { signal } = cancelling;
      const result = await call(rig, "ignores", signal, {}, onStatus);
      expect(result).toMatchObject(stopped);
      const [end] = loggedFacts(rig.logLines, "tool.ended");
      expect(end).toMatchObject({ report: { signal: "SIGKILL" } });
    },
  );
});

describe("a call that its caller cancels before its tool has started", () => {
  test("while it waits for a slot leaves the line, and what runs goes on", async () => {
    await using rig = await startRig({
      tools: { polls: python("polls"), well: { function: "well" } },
      environment: { SANDBOX_MAX_CONCURRENT: "1" },
    });
    const [running, queued] = [new AbortController(), new AbortController()];
    const isReady = Promise.withResolvers<void>();
    const first = call(rig, "polls", running.signal, {}, () => isReady.resolve());
    await isReady.promise;
    const second = call(rig, "polls", queued.signal);
    await vi.waitFor(
      () => expect(loggedFacts(rig.logLines, "call.no_free_slot")).toHaveLength(1),
      patience,
    );
    queued.abort();
    expect(await second).toMatchObject(notStarted);
    const third = rig.call("well");
    running.abort();
    expect(await first).toMatchObject(stopped);
    expect(await third).toMatchObject({ kind: "success" });
  });

  test("while its input is loaded from a store that stands still does not wait for it", async () => {
    await using rig = await stalledRig({ reads: python("reads", { idempotent: false }) });
    const about = { mimeType: "text/plain" };
    await rig.store.save(rig.scope, "in.txt", sourceOf("x".repeat(100)), about, never);
    const before = s3().count("GetObject");
    using _fault = s3().fault({
      operation: "GetObject",
      times: 100,
      fault: { kind: "stall answer", afterBytes: 10 },
    });
    const cancel = new AbortController();
    const references = new Map([["input_file", { filename: "in.txt", version: 0 }]]);
    const staged = call(rig, "reads", cancel.signal, { references });
    await vi.waitFor(() => expect(s3().count("GetObject")).toBeGreaterThan(before), patience);
    cancel.abort();
    expect(await staged).toMatchObject(notStarted);
  });
});

describe("a call that its caller cancels after its tool has ended", () => {
  test("while its outputs are saved keeps none of them", async () => {
    await using rig = await stalledRig({ saves: python("saves", { idempotent: false }) });
    const before = s3().count("PutObject");
    using _fault = s3().fault({ operation: "PutObject", fault: { kind: "stall" } });
    const cancel = new AbortController();
    const saved = call(rig, "saves", cancel.signal);
    // Others are saved while one stands still.
    await vi.waitFor(() => expect(s3().count("PutObject")).toBeGreaterThan(before + 1), patience);
    cancel.abort();
    expect(await saved).toMatchObject(stopped);
    expect((await rig.store.names(rig.scope, never)).filter((name) => name !== "in.txt")).toEqual(
      [],
    );
  });
});

describe("a call that its caller cancels while its worker shuts down", () => {
  const more = { args: { ends_at_sigterm: true } };
  const longMs = 600_000;

  /** A call that runs. */
  async function running(tool: "once_only" | "repeatable") {
    const workers = await MemoryWorkers.prepare({ maxUnsettled: 1 });
    const { worker } = await workers.startWorker(1);
    workers.publishCall(tool, "call", more);
    await workers.runs.haveBegun("call");
    return { workers, worker };
  }

  test("is answered by it, and not requeued", async () => {
    const { workers, worker } = await running("repeatable");
    const draining = worker.drain(longMs);
    workers.cancel("call");
    expect(await draining).toEqual({ finished: 1, requeued: 0, abandoned: 0 });
    await workers.answered("call");
    expect(workers.answers.get("call")).toMatchObject([{ code: "CANCELLED" }]);
  });

  const next = "after it was given up is answered by the next one, which does not run it";
  test(next, { tags: "full" }, async () => {
    const { workers, worker } = await running("repeatable");
    const { worker: other } = await workers.startWorker(1);
    // The next worker is full, so that the call waits in the broker.
    workers.publishCall("once_only", "other", more);
    await workers.runs.haveBegun("call", "other");
    await worker.drain(0);
    workers.cancel("call");
    workers.runs.finish("other");
    await workers.answered("call", "other");
    expect(workers.answers.get("call")).toMatchObject([{ code: "CANCELLED" }]);
    await other.drain(longMs);
    expect(workers.runs.begun.toSorted()).toEqual(["call", "other"]);
  });

  test(
    "while it waits for the run of another worker is answered by it, and not requeued",
    { tags: "full" },
    async () => {
      const workers = await MemoryWorkers.prepare();
      const taken = workers.takeAndDie("repeatable");
      workers.publish("repeatable", "call");
      await taken;
      await workers.markBegun("repeatable", "call");
      const { worker, said } = await workers.startWorker(1);
      workers.cancel("call");
      await vi.waitFor(() => {
        // A worker hears cancels in order, and logs those of calls that it has.
        workers.cancel("call", "other");
        expect(said()).toContain("cancel.ignored");
      }, patience);
      expect(await worker.drain(longMs)).toMatchObject({ requeued: 0, abandoned: 0 });
      await workers.answered("call");
      expect(workers.answers.get("call")).toMatchObject([
        { code: "CANCELLED", message: expect.stringContaining("may have run") as unknown },
      ]);
      await worker[Symbol.asyncDispose]();
      await workers.expectAllSettled("repeatable");
    },
  );
});

const unheard =
  "a call whose CANCELLED did not reach the broker is not run by a worker that did not hear the cancel";
test(unheard, { tags: "full" }, async () => {
  const workers = await MemoryWorkers.prepare();
  const { broker } = workers;
  const gate = Promise.withResolvers<void>();
  const breaking = breakingBeforeAnswer(broker, () => broker.dropSessions());
  await workers.startWorker(1, reconnectingAfter(breaking, gate.promise));
  workers.cancel("call");
  workers.publish("repeatable", "call");
  const marks = join(workers.base, "artifacts");
  await vi.waitFor(async () => {
    const names = await readdir(marks, { recursive: true });
    expect(names.filter((name) => name.endsWith(".unpublished"))).toHaveLength(1);
  }, patience);
  const next = tellingOfDeliveries(broker, () => gate.resolve());
  const { said } = await workers.startWorker(1, next);
  await vi.waitFor(() => expect(said()).toMatch(/call\.(answered_elsewhere|kept)/), patience);
  await workers.answered("call");
  expect(workers.answers.get("call")).toMatchObject([{ code: "CANCELLED" }]);
  expect(workers.runs.begun).toEqual([]);
});
