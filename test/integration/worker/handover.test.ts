/**
 * Two workers on a broker that redelivers: what one gives up when it stops, the other runs, and nothing is run or answered
 * more often than it may be.
 */
import { mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Writable } from "node:stream";
import { beforeEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { type ToolCall, decodeAnswer, encodeRequest } from "../../../harness/messages.ts";
import { createHost } from "../../../worker/app.ts";
import { type MemoryBroker, createMemoryBroker } from "../../../worker/broker/memory/broker.ts";
import { reconnecting } from "../../../worker/broker/reconnecting.ts";
import { readConfig } from "../../../worker/config.ts";
import { invokeTopic, responseTopic } from "../../../worker/protocol/topics.ts";
import { createLogger } from "../../../worker/telemetry/logger.ts";
import { Worker } from "../../../worker/worker.ts";
import { ToolRuns, announcingTool } from "../../support/announcing-tool.ts";
import { HeldSandboxes, SandboxWatch } from "../../support/held-sandboxes.ts";
import { manifestText, namespace, reachableDirectory } from "../../support/rig.ts";

const tools = {
  repeatable: { module: "announcing", function: "announces" },
  once_only: { module: "announcing", function: "announces", idempotent: false },
};
const soon = (): AbortSignal => AbortSignal.timeout(30_000);
const patience = { timeout: 20_000, interval: 20 };
const longMs = 600_000;

let base: string;
let broker: MemoryBroker;
let runs: ToolRuns;
let sandboxes: HeldSandboxes;
let answers: Map<string, object[]>;

beforeEach(async () => {
  base = await reachableDirectory();
  onTestFinished(() => rm(base, { recursive: true, force: true }));
  await mkdir(join(base, "tools"));
  await writeFile(join(base, "tools", announcingTool.file), announcingTool.source);
  await writeFile(join(base, "manifest.yaml"), manifestText(tools));
  broker = createMemoryBroker({ namespace });
  runs = await ToolRuns.listen();
  sandboxes = await HeldSandboxes.in(base);
  answers = collectAnswers();
});

/** Answers by the name of their call. */
function collectAnswers(): Map<string, object[]> {
  const heard = broker.subscribe(responseTopic(namespace, "agent", ">"));
  onTestFinished(() => heard[Symbol.dispose]());
  const collected = new Map<string, object[]>();
  void (async () => {
    for await (const { topic, payload } of heard) {
      const name = topic.slice(topic.lastIndexOf("/") + 1);
      const { response: _, ...answer } = decodeAnswer(payload);
      collected.set(name, [...(collected.get(name) ?? []), answer]);
    }
  })();
  return collected;
}

/** Calls a tool under names, by which runs and answers are known. */
function publish(tool: keyof typeof tools, ...names: string[]): void {
  for (const name of names) publishCall(tool, name, {});
}

function publishCall(tool: keyof typeof tools, name: string, more: Partial<ToolCall>): void {
  const args = { port: runs.port, name, ...more.args };
  const request = encodeRequest(name, "agent", { timeoutSeconds: 60, ...more, tool, args });
  const replyTo = responseTopic(namespace, "agent", name);
  broker.publish(invokeTopic(namespace, tool), request, { replyTo });
}

async function startWorker(maxConcurrent: number) {
  const environment = {
    SAM_NAMESPACE: namespace,
    DEV_BROKER_HOST: "not.used",
    MANIFEST_PATH: join(base, "manifest.yaml"),
    TOOLS_PYTHON_DIR: join(base, "tools"),
    SANDBOX_WORK_DIR: join(base, "work"),
    SANDBOX_BWRAP_BIN: sandboxes.bwrapBin,
    ARTIFACT_SERVICE_TYPE: "filesystem",
    ARTIFACT_BASE_PATH: join(base, "artifacts"),
    SANDBOX_MIN_FREE_DISK_MB: "1",
    SANDBOX_MAX_CONCURRENT: String(maxConcurrent),
    HEALTH_PORT: "0",
  };
  const lines: string[] = [];
  const output = new Writable({
    write: (chunk: Buffer, _encoding, done) => (lines.push(chunk.toString()), done()),
  });
  const log = createLogger("debug", output);
  const session = reconnecting(broker, {
    maxAttempts: 1,
    backoff: { baseMs: 1, capMs: 1 },
    log: { info: () => undefined, warn: () => undefined },
  });
  const worker = new Worker(readConfig(environment), createHost(log, environment), {
    broker: session,
  });
  onTestFinished(() => worker[Symbol.asyncDispose]());
  await worker.start(soon());
  return { worker, said: () => lines.join("") };
}

/** Waits for one answer to each of these calls. */
async function answered(...names: string[]): Promise<void> {
  await vi.waitFor(
    () => expect([...answers.keys()].toSorted()).toEqual(names.toSorted()),
    patience,
  );
}

const done = { kind: "success", toolResult: { told: "done" } };
const stoppedOnceOnly = {
  kind: "error",
  code: "SANDBOX_FAILED",
  message:
    "The tool was stopped because the worker is shutting down. Its manifest entry forbids to run the call again",
};

describe("a worker that drains", () => {
  test("gives calls that wait for a slot to another at once, and finishes what runs", async () => {
    const former = await startWorker(1);
    publish("repeatable", "running", "waiting");
    publish("once_only", "waiting too");
    await runs.haveBegun("running");
    await vi.waitFor(
      () => expect(former.said().match(/no slot is free/g)).toHaveLength(2),
      patience,
    );
    await startWorker(4);
    const drained = former.worker.drain(longMs);
    await runs.haveBegun("running", "waiting", "waiting too");
    runs.finish("running", "waiting", "waiting too");
    expect(await drained).toEqual({ finished: 1, givenBack: 2, abandoned: 0 });
    await answered("running", "waiting", "waiting too");
    for (const answer of answers.values()) expect(answer).toMatchObject([done]);
  });

  test("leaves calls that wait for a slot in the broker when there is no other worker yet", async () => {
    const former = await startWorker(1);
    publish("repeatable", "running", "waiting");
    await runs.haveBegun("running");
    const drained = former.worker.drain(longMs);
    runs.finish("running");
    expect(await drained).toEqual({ finished: 1, givenBack: 1, abandoned: 0 });
    await former.worker[Symbol.asyncDispose]();
    await startWorker(1);
    await runs.haveBegun("running", "waiting");
    runs.finish("waiting");
    await answered("running", "waiting");
  });

  test("stops at its deadline what another may run again, which then does", async () => {
    const former = await startWorker(2);
    publish("repeatable", "call");
    await runs.haveBegun("call");
    await startWorker(2);
    expect(await former.worker.drain(0)).toEqual({ finished: 0, givenBack: 0, abandoned: 1 });
    await runs.haveBegun("call", "call");
    runs.finish("call");
    await answered("call");
    expect(answers.get("call")).toMatchObject([done]);
    expect(former.said()).toMatch(/"begun":true,"msg":"invocation given back"/);
  });

  test("stops at its deadline what must not run again, and answers it", async () => {
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
    expect(await other.worker.drain(longMs)).toMatchObject({ givenBack: 0, abandoned: 0 });
    expect(Object.fromEntries(answers)).toMatchObject({ call: [stoppedOnceOnly], later: [done] });
  });

  test("gives everything up at once when it is hurried", async () => {
    const former = await startWorker(1);
    publish("repeatable", "running", "waiting");
    await runs.haveBegun("running");
    const other = await startWorker(2);
    void former.worker.drain(longMs);
    former.worker.hurry();
    await former.worker[Symbol.asyncDispose]();
    await runs.haveBegun("running", "running", "waiting");
    runs.finish("running", "waiting");
    await answered("running", "waiting");
    expect(await other.worker.drain(longMs)).toMatchObject({ givenBack: 0, abandoned: 0 });
    for (const answer of answers.values()) expect(answer).toMatchObject([done]);
  });
});

describe("a call that its worker gives up is run by another, and answered once, when it", () => {
  type Former = Awaited<ReturnType<typeof startWorker>>;
  const saysOf = async ({ said }: Former, event: string): Promise<void> => {
    await vi.waitFor(() => expect(said()).toContain(event), { ...patience, interval: 1 });
  };

  test.for<readonly [string, (former: Former) => Promise<void>]>([
    [
      "got its inputs",
      async (former) => {
        const bytes = new Uint8Array(5_000_000);
        const input = { filename: "in.bin", version: 0, mimeType: "text/plain", bytes };
        publishCall("repeatable", "call", { preloaded: new Map([["input", input]]) });
        await saysOf(former, "staging inputs");
      },
    ],
    [
      "had its sandbox made",
      async () => {
        const watch = new SandboxWatch(join(base, "work"));
        await watch.meet();
        await sandboxes.holdAt("born");
        publish("repeatable", "call");
        await watch.reaches("born");
        await sandboxes.forget();
      },
    ],
    [
      "had its outputs saved",
      async (former) => {
        publishCall("repeatable", "call", { args: { saved_bytes: 50_000_000 } });
        await runs.haveBegun("call");
        runs.finish();
        await saysOf(former, "tool process ended");
      },
    ],
  ])("%s", async ([, bringTo]) => {
    const former = await startWorker(1);
    await bringTo(former);
    await former.worker.drain(0);
    await former.worker[Symbol.asyncDispose]();
    const next = await startWorker(1);
    const finishing = setInterval(() => runs.finish(), 20);
    onTestFinished(() => clearInterval(finishing));
    await answered("call");
    expect(await next.worker.drain(longMs)).toMatchObject({ givenBack: 0, abandoned: 0 });
    expect(answers.get("call")).toMatchObject([done]);
    expect(runs.begun.length).toBeLessThanOrEqual(2);
  });
});

test("a worker that is disposed of without a drain gives its calls to another", async () => {
  const former = await startWorker(1);
  publish("repeatable", "running", "waiting");
  await runs.haveBegun("running");
  await former.worker[Symbol.asyncDispose]();
  expect(answers.size).toBe(0);
  await startWorker(2);
  await runs.haveBegun("running", "running", "waiting");
  runs.finish("running", "waiting");
  await answered("running", "waiting");
});

test("no call is lost, answered twice or run too often while workers come and go", async () => {
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
});
