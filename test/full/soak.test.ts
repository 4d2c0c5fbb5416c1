/**
 * A worker under a long mixed load: everything is answered exactly once, and nothing is left
 * behind.
 *
 * @module-tag full
 */
import { readFileSync, readdirSync } from "node:fs";
import { readdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { describe, expect, test, vi } from "vitest";
import { Agent, type CallResult } from "../../harness/agent.ts";
import { DevClient } from "../support/brokers/dev-client.ts";
import { type DevBroker, startDevBroker } from "../../harness/dev-broker/dev-broker.ts";
import type { ToolCall } from "../../harness/messages.ts";
import { leanMemory } from "../../harness/worker/worker-process.ts";
import { openStore } from "../../worker/artifacts/open.ts";
import { responseTopic } from "../../worker/protocol/topics.ts";
import { namespace, reachableDirectory, workerEnvironment } from "../support/workers/rig.ts";
import { WorkerProcess } from "../support/workers/worker-process.ts";

const calls = 600;
const inFlight = 8;
/** Work directories that are made ahead of calls, at most: two batches. */
const maxReadyWorkDirs = 64;
/** Calls after which the worker has opened and cached what it keeps. */
const warmUpCalls = 200;
/**
 * Growth of the worker's resident memory over the rest of the calls that is no leak but the garbage
 * collector's slack.
 */
const memorySlackBytes = 48 * 1024 * 1024;

const fixtures = fileURLToPath(new URL("../fixtures/soak/", import.meta.url));
const agentName = "soak";
const owner = { userId: "soak", sessionId: "soak" };
const content = "0123456789".repeat(1_000);
const reversed = content.split("").reverse().join("");

const python = (name: string) => ({ module: "soak_python", function: name });
const node = (name: string) => ({ runtime: "node", module: "soak.ts", function: name });
const tools = {
  python_well: python("well"),
  python_fails: python("fails"),
  python_dies: python("dies"),
  python_sleeps: { ...python("sleeps"), timeout_seconds: 1 },
  python_transforms: python("transforms"),
  python_leaves_children: python("leaves_children"),
  node_well: node("well"),
  node_fails: node("fails"),
  node_sleeps: { ...node("sleeps"), timeout_seconds: 1 },
  node_transforms: node("transforms"),
};

/**
 * One kind of call: how it is made, what must become of it, and how many of 40 calls are of this
 * kind.
 */
interface Kind {
  readonly share: number;
  readonly call: (index: number) => ToolCall;
  readonly answer: (index: number) => object;
}

const message = (index: number): string => `call ${index}`;
const artifacts = {
  preloaded: new Map([
    [
      "data",
      { filename: "data.txt", version: 0, mimeType: "text/plain", bytes: Buffer.from(content) },
    ],
  ]),
  references: new Map([["referenced", { filename: "referenced.txt", version: undefined }]]),
};
const transformed = {
  kind: "success",
  toolResult: { length: 2 * content.length },
  createdArtifacts: [
    {
      filename: "reversed.txt",
      mimeType: "text/plain",
      sizeBytes: 2 * content.length,
      description: "the input, backwards",
    },
  ],
};

const kinds: readonly Kind[] = [
  ...["python_well", "node_well"].map((tool) => ({
    share: 10,
    call: (index: number) => ({ tool, args: { message: message(index) } }),
    answer: (index: number) => ({ kind: "success", toolResult: { said: message(index) } }),
  })),
  ...["python_transforms", "node_transforms"].map((tool) => ({
    share: 4,
    call: () => ({ tool, args: { data: "data.txt", referenced: "referenced.txt" }, ...artifacts }),
    answer: () => transformed,
  })),
  ...["python_fails", "node_fails"].map((tool) => ({
    share: 3,
    call: (index: number) => ({ tool, args: { message: message(index) } }),
    answer: (index: number) => ({ kind: "error", code: "TOOL_ERROR", message: message(index) }),
  })),
  ...["python_sleeps", "node_sleeps"].map((tool) => ({
    share: 1,
    call: () => ({ tool }),
    answer: () => ({ kind: "timed-out" }),
  })),
  {
    share: 2,
    call: () => ({ tool: "python_dies" }),
    answer: () => ({ kind: "error", code: "SANDBOX_FAILED" }),
  },
  {
    share: 2,
    call: () => ({ tool: "python_leaves_children" }),
    answer: () => ({ kind: "success", toolResult: { parent: "done" } }),
  },
];

/**
 * The kinds in the order in which they are called: every kind as often as its share, spread over
 * the whole.
 */
const turns = kinds.flatMap((kind) => Array.from({ length: kind.share }, () => kind));
/** Has no common divisor with the number of turns, so every turn comes. */
const stride = 7;

/** Counts the answers on the wire, by call. */
async function countAnswers(broker: DevBroker, signal: AbortSignal) {
  const answers = new Map<string, number>();
  const client = await DevClient.connect(
    {
      host: broker.host,
      port: broker.port,
      name: "counter",
      patterns: [responseTopic(namespace, agentName, ">")],
    },
    AbortSignal.timeout(30_000),
  );
  // Broken off by the signal, or by the end of the connection when the test fails: the counts say
  // enough.
  const counting = (async () => {
    for await (const { topic } of client.messages(signal)) {
      answers.set(topic, (answers.get(topic) ?? 0) + 1);
    }
  })().catch(() => undefined);
  return { client, answers, counting };
}

const descriptors = (pid: number): number => readdirSync(`/proc/${pid}/fd`).length;
/** Zombies included. Each with what it is, for the case that it should not be there. */
const children = (pid: number): readonly string[] =>
  readdirSync(`/proc/${pid}/task`)
    .flatMap((task) => readFileSync(`/proc/${pid}/task/${task}/children`, "utf8").split(" "))
    .filter(Boolean)
    .map((child) => `${child} ${readFileSync(`/proc/${child}/comm`, "utf8").trimEnd()}`);
const residentBytes = (pid: number): number =>
  Number(readFileSync(`/proc/${pid}/statm`, "utf8").split(" ")[1]) * 4096;
const median = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]!;

/** Work directories, and those of them in which something of a call lies. */
async function workDirsBelow(workBase: string) {
  const entries = await readdir(workBase, { recursive: true });
  return {
    all: entries.filter((entry) => /^worker-[^/]+\/[0-9a-f]{24}$/.test(entry)),
    used: entries.filter((entry) =>
      /^worker-[^/]+\/[0-9a-f]{24}\/(?:(?:in|out)put\/|.*\.json$)/.test(entry),
    ),
  };
}

describe("a long mixed load", () => {
  test(
    "is answered call by call, exactly once, and leaves nothing",
    { timeout: 900_000 },
    async () => {
      await using owned = new AsyncDisposableStack();
      const base = await reachableDirectory();
      owned.defer(() => rm(base, { recursive: true, force: true }));
      const broker = owned.use(await startDevBroker());
      const manifestPath = join(base, "manifest.yaml");
      await writeFile(manifestPath, JSON.stringify({ version: 1, tools }));
      const store = owned.use(
        await openStore({ kind: "filesystem", basePath: join(base, "artifacts") }),
      );
      const scope = { root: namespace, ...owner };
      const source = {
        sizeBytes: content.length,
        open: () => Readable.from([Buffer.from(content)]),
      };
      const never = new AbortController().signal;
      await store.check(never);
      await store.save(scope, "referenced.txt", source, { mimeType: "text/plain" }, never);
      const worker = owned.use(
        new WorkerProcess({
          ...leanMemory,
          ...workerEnvironment(broker, base, manifestPath, join(fixtures, "python")),
          TOOLS_NODE_DIR: join(fixtures, "node"),
          SANDBOX_MAX_CONCURRENT: String(inFlight),
          LOG_LEVEL: "warn",
        }),
      );
      const agent = owned.use(
        await Agent.connect(
          { host: broker.host, port: broker.port, namespace, name: agentName },
          AbortSignal.timeout(30_000),
        ),
      );
      for (const tool of Object.keys(tools)) {
        await agent.whenServed(tool, AbortSignal.timeout(60_000));
      }
      const counted = new AbortController();
      const { client, answers, counting } = await countAnswers(broker, counted.signal);
      owned.use(client);

      const pid = worker.child.pid!;
      const memory: number[] = [];
      // The process that outlives the worker and ends what a killed one leaves, and the door to
      // networks of sandboxes.
      const own = [expect.stringMatching(/ sh$/), expect.stringMatching(/ python3$/)];
      const make = async (index: number): Promise<CallResult> => {
        const kind = turns[(index * stride) % turns.length]!;
        const result = await agent.call({ timeoutSeconds: 60, ...owner, ...kind.call(index) });
        expect(result, `call ${index}: ${JSON.stringify(result)}`).toMatchObject(
          kind.answer(index),
        );
        memory.push(residentBytes(pid));
        return result;
      };
      const makeAll = async (first: number, end: number): Promise<readonly CallResult[]> => {
        const results: CallResult[] = [];
        let next = first;
        await Promise.all(
          Array.from({ length: inFlight }, async () => {
            while (next < end) results.push(await make(next++));
          }),
        );
        return results;
      };

      const first = await makeAll(0, warmUpCalls);
      await vi.waitFor(() => expect(children(pid)).toEqual(own), { timeout: 30_000 });
      const descriptorsBefore = descriptors(pid);
      const rest = await makeAll(warmUpCalls, calls);

      const topics = [...first, ...rest].map(({ correlationId }) =>
        responseTopic(namespace, agentName, correlationId),
      );
      await vi.waitFor(() => expect([...answers.keys()]).toEqual(expect.arrayContaining(topics)), {
        timeout: 30_000,
      });
      expect(topics.filter((topic) => answers.get(topic) !== 1)).toEqual([]);
      expect(new Set(topics).size).toBe(calls);

      await vi.waitFor(
        async () => {
          expect(children(pid)).toEqual(own);
          const workDirs = await workDirsBelow(join(base, "work"));
          expect(workDirs.used).toEqual([]);
          expect(workDirs.all.length).toBeLessThanOrEqual(maxReadyWorkDirs);
          expect(descriptors(pid)).toBeLessThanOrEqual(descriptorsBefore);
        },
        { timeout: 30_000 },
      );
      const quarter = Math.floor(memory.length / 4);
      const growth = median(memory.slice(-quarter)) - median(memory.slice(quarter, 2 * quarter));
      expect(growth).toBeLessThan(memorySlackBytes);

      const latest = { filename: "reversed.txt", version: undefined };
      const { body } = await store.open(scope, latest, never);
      expect(await text(body)).toBe(reversed.repeat(2));

      counted.abort();
      await counting;
      worker.child.kill("SIGTERM");
      expect(await worker.exited).toEqual({ code: 0, signal: null });
      expect(
        (await readdir(join(base, "work"))).filter((name) => name.startsWith("worker-")),
      ).toEqual([]);
    },
  );
});
