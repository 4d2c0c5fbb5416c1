/**
 * What an agent that is not ours hears while workers are killed, stopped and cut off and the broker
 * is restarted: no call runs twice that must not, and none is refused that could run.
 *
 * @module-tag full
 */
import { spawn } from "node:child_process";
import { mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { type TestContext, describe, expect, onTestFinished, test, vi } from "vitest";
import { decodeAnswer, encodeRequest } from "../../harness/messages.ts";
import { newNamespace, useOwnRabbitMQ } from "../integration/amqp/node.ts";
import { countEffects, effectSource } from "../support/chaos/effects.ts";
import { ChaosHistory, eventsOf } from "../support/chaos/history.ts";
import { programEnvironment } from "../support/workers/program-environment.ts";
import { pypiPackages } from "../support/pypi-packages.ts";
import { manifestText, reachableDirectory } from "../support/workers/rig.ts";
import { WorkerProcess } from "../support/workers/worker-process.ts";

const agent = fileURLToPath(new URL("../fixtures/agents/pika_agent.py", import.meta.url));
const agentName = "pika";
/** A mark without a touch is one of a dead worker after ten seconds; calls take some more. */
const patience = { timeout: 120_000, interval: 100 };
const timeoutMs = 300_000;
const success = "success";

interface MeshParts {
  readonly environment: Readonly<Record<string, string>>;
  readonly base: string;
  readonly history: ChaosHistory;
  /** Where tools tell that they have begun. */
  readonly effectsPort: number;
  /** Hands a call to the agent. */
  readonly send: (call: object) => void;
}

/** Workers of a group with a store that they share, and the agent that calls them. */
class Mesh {
  /** Answers by request, in the order in which they were heard. */
  readonly heard = new Map<string, string[]>();
  readonly #parts: MeshParts;
  #started = 0;

  private constructor(parts: MeshParts) {
    this.#parts = parts;
  }

  static async open(context: TestContext, url: string, tools: object): Promise<Mesh> {
    const packages = await pypiPackages(context, ["pika==1.3.2"]);
    const base = await reachableDirectory();
    onTestFinished(() => rm(base, { recursive: true, force: true }));
    await writeFile(join(base, "manifest.yaml"), manifestText(tools as never));
    const environment = { SAM_NAMESPACE: newNamespace(), AMQP_URL: url };
    const child = spawn("/usr/bin/python3", [agent], {
      env: { ...programEnvironment(), PYTHONPATH: packages, ...environment },
      stdio: ["pipe", "pipe", "inherit"],
    });
    onTestFinished(() => void child.kill("SIGKILL"));
    const send = (call: object): void => void child.stdin.write(`${JSON.stringify(call)}\n`);
    const history = new ChaosHistory();
    const effects = await countEffects(history);
    onTestFinished(() => effects[Symbol.asyncDispose]());
    const mesh = new Mesh({ environment, base, history, effectsPort: effects.port, send });
    createInterface(child.stdout).on("line", (line) => {
      const { request, body } = JSON.parse(line) as { request: string; body: string };
      const answer = decodeAnswer(Buffer.from(body));
      const ending = answer.kind === "error" ? answer.code : answer.kind;
      mesh.heard.set(request, [...(mesh.heard.get(request) ?? []), ending]);
    });
    return mesh;
  }

  /** Starts workers, and waits until they serve. */
  async startWorkers(count: number, slots = 4): Promise<readonly WorkerProcess[]> {
    const workers = await Promise.all(
      Array.from({ length: count }, () => this.#startWorker(slots)),
    );
    await Promise.all(workers.map((worker) => worker.says("worker.ready")));
    return workers;
  }

  /** Publishes a call that takes so long, `copies` times. */
  call(request: string, tool: string, seconds: number, copies = 1): void {
    const args = { port: this.#parts.effectsPort, request, seconds };
    const body = encodeRequest(request, agentName, { tool, args, timeoutSeconds: 300 });
    for (let copy = 0; copy < copies; copy++)
      this.#parts.send({ request, tool, body: body.toString() });
  }

  /** How often the runs of a request began. */
  runsOf(request: string): number {
    return this.begun.filter((one) => one === request).length;
  }

  /** Requests in the order in which their runs began. */
  get begun(): readonly string[] {
    return eventsOf("began", this.#parts.history.events).map(({ request }) => request);
  }

  async haveBegun(...requests: readonly string[]): Promise<void> {
    await vi.waitFor(
      () => expect(this.begun).toEqual(expect.arrayContaining([...requests])),
      patience,
    );
  }

  async haveAnswers(requests: readonly string[]): Promise<void> {
    const missing = (): readonly string[] => requests.filter((one) => !this.heard.has(one));
    await vi.waitFor(() => expect(missing()).toEqual([]), patience);
  }

  async #startWorker(slots: number): Promise<WorkerProcess> {
    const { base, environment } = this.#parts;
    const id = `worker-${++this.#started}`;
    const tools = join(base, `tools-${id}`);
    await mkdir(tools);
    await writeFile(join(tools, "effect.py"), effectSource(id));
    const worker = new WorkerProcess({
      ...environment,
      SAM_WORKER_ID: id,
      MANIFEST_PATH: join(base, "manifest.yaml"),
      TOOLS_PYTHON_DIR: tools,
      SANDBOX_WORK_DIR: join(base, `work-${id}`),
      SANDBOX_MAX_CONCURRENT: String(slots),
      SANDBOX_MIN_FREE_DISK_MB: "1",
      ARTIFACT_SERVICE_TYPE: "filesystem",
      ARTIFACT_BASE_PATH: join(base, "artifacts"),
      HEALTH_PORT: "0",
    });
    onTestFinished(() => worker[Symbol.asyncDispose]());
    return worker;
  }
}

const effect = {
  ...{ module: "effect", function: "run", timeout_seconds: 120 },
  network: "host",
} as const;
const once = { ...effect, idempotent: false };
const both = { repeatable: effect, once };

describe("an agent that uses pika, with workers that share a store,", () => {
  const node = useOwnRabbitMQ();

  test(
    "has each of 30 calls run once when the broker is restarted",
    async (context) => {
      const tools = Object.fromEntries(
        Array.from({ length: 10 }, (_, index) => [
          `tool_${index}`,
          index % 2 === 0 ? effect : once,
        ]),
      );
      const mesh = await Mesh.open(context, node().url, tools);
      await mesh.startWorkers(8);
      const requests = Array.from({ length: 30 }, (_, index) => `call-${index}`);
      for (const [index, request] of requests.entries())
        mesh.call(request, `tool_${index % 10}`, 1);
      await mesh.haveBegun("call-3");
      await node().stop();
      await node().start();
      await mesh.haveAnswers(requests);
      // An answer that the broker did not confirm before it went is sent again.
      for (const request of requests)
        expect([request, ...new Set(mesh.heard.get(request))]).toEqual([request, success]);
      expect(mesh.begun.toSorted()).toEqual(requests.toSorted());
    },
    timeoutMs,
  );

  test(
    "is refused only the calls that a killed worker ran, not those that it held",
    async (context) => {
      const mesh = await Mesh.open(context, node().url, both);
      const [killed] = await mesh.startWorkers(1, 2);
      mesh.call("run-1", "once", 600);
      mesh.call("run-2", "once", 600);
      await mesh.haveBegun("run-1", "run-2");
      const held = Array.from({ length: 8 }, (_, index) => `held-${index}`);
      for (const request of held) mesh.call(request, "once", 0);
      await vi.waitFor(() => expect(killed!.output).toMatch(/held-\d/), patience);
      killed!.child.kill("SIGKILL");
      await killed!.exited;
      await mesh.startWorkers(1, 2);
      await mesh.haveAnswers(["run-1", "run-2", ...held]);
      expect(mesh.heard.get("run-1")).toEqual(["NOT_REPEATED"]);
      expect(mesh.heard.get("run-2")).toEqual(["NOT_REPEATED"]);
      for (const request of held)
        expect([request, mesh.heard.get(request)]).toEqual([request, [success]]);
    },
    timeoutMs,
  );

  test(
    "never has a call begin in a worker that stood still, after another answered it",
    async (context) => {
      const mesh = await Mesh.open(context, node().url, both);
      const [still] = await mesh.startWorkers(1, 1);
      mesh.call("running", "once", 5);
      await mesh.haveBegun("running");
      mesh.call("held", "repeatable", 0);
      await vi.waitFor(() => expect(still!.output).toMatch(/"held"/), patience);
      still!.child.kill("SIGSTOP");
      await mesh.startWorkers(1, 1);
      await node().closeAllConnections();
      await mesh.haveAnswers(["running", "held"]);
      still!.child.kill("SIGCONT");
      mesh.call("last", "once", 0);
      await mesh.haveAnswers(["last"]);
      await sleep(3_000);
      expect(mesh.heard.get("held")).toEqual([success]);
      expect(mesh.heard.get("running")).toEqual(["NOT_REPEATED"]);
      for (const request of ["running", "held", "last"]) expect(mesh.runsOf(request)).toBe(1);
    },
    timeoutMs,
  );

  test(
    "has a long call run once and answered once, though its connection is lost four times",
    async (context) => {
      const mesh = await Mesh.open(context, node().url, both);
      await mesh.startWorkers(2, 2);
      mesh.call("long", "repeatable", 20);
      await mesh.haveBegun("long");
      for (let losses = 0; losses < 4; losses++) {
        await node().closeAllConnections();
        await sleep(3_000);
      }
      await mesh.haveAnswers(["long"]);
      mesh.call("last", "repeatable", 0);
      await mesh.haveAnswers(["last"]);
      expect(mesh.runsOf("long")).toBe(1);
      expect(mesh.heard.get("long")).toEqual([success]);
    },
    timeoutMs,
  );

  test(
    "that publishes a request twice has one effect",
    async (context) => {
      const mesh = await Mesh.open(context, node().url, both);
      await mesh.startWorkers(2, 1);
      const requests = Array.from({ length: 10 }, (_, index) => `twice-${index}`);
      for (const request of requests) mesh.call(request, "once", 0.3, 2);
      await mesh.haveAnswers(requests);
      mesh.call("last", "once", 0);
      await mesh.haveAnswers(["last"]);
      for (const request of requests) {
        expect(mesh.runsOf(request)).toBe(1);
        // Two answers, unless one worker had both.
        expect(new Set(mesh.heard.get(request))).toEqual(new Set([success]));
      }
    },
    timeoutMs,
  );
});
