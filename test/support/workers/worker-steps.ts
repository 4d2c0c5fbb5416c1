/**
 * A worker as a process, and calls that are brought to a step of their handling: what a test needs
 * that then ends the worker in one way or another.
 */
import { once } from "node:events";
import { mkdir, readdir, rm, writeFile } from "node:fs/promises";
import { type AddressInfo, type Server, type Socket, connect, createServer } from "node:net";
import { join } from "node:path";
import { Readable } from "node:stream";
import { expect, onTestFinished, vi } from "vitest";
import { defaultSessionId, defaultUserId } from "../../../harness/options/defaults.ts";
import { DevClient } from "../brokers/dev-client.ts";
import { startDevBroker } from "../../../harness/dev-broker/dev-broker.ts";
import {
  type Answer,
  type ToolCall,
  decodeAnswer,
  encodeRequest,
} from "../../../harness/messages.ts";
import { openStore } from "../../../worker/artifacts/open.ts";
import { readConfig } from "../../../worker/config/config.ts";
import { invokeTopic, responseTopic } from "../../../worker/protocol/topics.ts";
import { ToolRuns, announces, announcingTool, passesOn } from "./announcing-tool.ts";
import { HeldSandboxes, SandboxWatch } from "../sandboxes/held-sandboxes.ts";
import { manifestText, namespace, reachableDirectory, workerEnvironment } from "./rig.ts";
import { WorkerProcess } from "./worker-process.ts";

/** Patience with a busy machine. */
export const patience = { timeout: 20_000, interval: 20 };
const soon = (): AbortSignal => AbortSignal.timeout(patience.timeout);

/** Large enough to be copied, or saved, for some time. */
const largeBytes = 50_000_000;
const largeInput = new Map([["input", { filename: "large.bin", version: 0 }]]);

const agentName = "raw";

/**
 * Workers on a DevBroker, one after the other, below one directory; everything ends with the test.
 */
export class WorkerSteps {
  readonly environment: Readonly<Record<string, string>>;
  /** `SANDBOX_WORK_DIR`. */
  readonly workBase: string;
  readonly sandboxes: HeldSandboxes;
  readonly watch: SandboxWatch;
  readonly runs: ToolRuns;
  /** What workers send to the broker goes through here. */
  readonly outlet: Outlet;
  /** Answers, by the names of their calls. */
  readonly answers = new Map<string, Answer[]>();
  readonly #client: DevClient;
  #hasInput = false;

  private constructor(
    parts: Pick<WorkerSteps, "environment" | "workBase" | "sandboxes" | "runs" | "outlet">,
    client: DevClient,
  ) {
    this.environment = parts.environment;
    this.workBase = parts.workBase;
    this.sandboxes = parts.sandboxes;
    this.watch = new SandboxWatch(parts.workBase);
    this.runs = parts.runs;
    this.outlet = parts.outlet;
    this.#client = client;
  }

  /**
   * @param variables on top of those that every worker gets; one call runs at once unless they say
   *   otherwise
   */
  static async prepare(variables: Readonly<Record<string, string>> = {}): Promise<WorkerSteps> {
    const base = await reachableDirectory();
    onTestFinished(() => rm(base, { recursive: true, force: true }));
    await mkdir(join(base, "tools"));
    await writeFile(join(base, "tools", announcingTool.file), announcingTool.source);
    const manifestPath = join(base, "manifest.yaml");
    const passes_on = { ...passesOn, gateway: { tools: ["announces"] } };
    await writeFile(manifestPath, manifestText({ announces, passes_on }));
    const broker = await startDevBroker();
    onTestFinished(() => broker[Symbol.asyncDispose]());
    const patterns = [responseTopic(namespace, agentName, ">")];
    const client = await DevClient.connect({ ...broker, name: agentName, patterns }, soon());
    onTestFinished(() => client[Symbol.asyncDispose]());
    const outlet = await Outlet.to(broker.port);
    const sandboxes = await HeldSandboxes.in(base);
    const environment = {
      ...workerEnvironment(broker, base, manifestPath, join(base, "tools")),
      DEV_BROKER_PORT: String(outlet.port),
      SANDBOX_BWRAP_BIN: sandboxes.bwrapBin,
      SANDBOX_MAX_CONCURRENT: "1",
      ...variables,
    };
    const parts = { environment, workBase: join(base, "work"), sandboxes, outlet };
    const steps = new WorkerSteps({ ...parts, runs: await ToolRuns.listen() }, client);
    onTestFinished(async () => {
      // A test that fails must not leave what it looked for.
      for (const { pid } of await steps.watch.processes()) process.kill(pid, "SIGKILL");
    });
    void steps.#listen();
    return steps;
  }

  /**
   * Starts a worker. When it is ready, its directory is the only one, and no sandbox of a former
   * worker lives.
   */
  async startWorker(): Promise<WorkerProcess> {
    const worker = new WorkerProcess(this.environment);
    onTestFinished(() => worker[Symbol.asyncDispose]());
    await worker.says("worker.ready");
    expect(await this.watch.processes()).toEqual([]);
    expect(await readdir(this.workBase)).toHaveLength(1);
    await this.watch.meet();
    if (!this.#hasInput) await this.#saveInput();
    this.#hasInput = true;
    return worker;
  }

  /** Calls `announces` or another tool under a name, by which its run and its answer are known. */
  async call(name: string, more: Partial<ToolCall> = {}): Promise<void> {
    const args = { port: this.runs.port, name, ...more.args };
    const call = { timeoutSeconds: 120, tool: "announces", ...more, args };
    const properties = { replyTo: responseTopic(namespace, agentName, name) };
    const request = encodeRequest(name, agentName, call);
    await this.#client.publish(invokeTopic(namespace, call.tool), request, properties, soon());
  }

  /** Every answer so far, once nothing that a worker published before is on its way any more. */
  async allAnswers(): Promise<ReadonlyMap<string, readonly Answer[]>> {
    const last = responseTopic(namespace, agentName, "last");
    await this.#client.publish(last, Buffer.from("{}"), {}, soon());
    await vi.waitFor(() => expect(this.answers.has("last")).toBe(true), patience);
    this.answers.delete("last");
    return this.answers;
  }

  async #listen(): Promise<void> {
    const { signal } = new AbortController();
    try {
      for await (const { topic, payload } of this.#client.messages(signal)) {
        const name = topic.slice(topic.lastIndexOf("/") + 1);
        this.answers.set(name, [...(this.answers.get(name) ?? []), decodeAnswer(payload)]);
      }
    } catch {
      // The client is closed with the test.
    }
  }

  /** The store's directory is there once a worker was. */
  async #saveInput(): Promise<void> {
    await using store = await openStore(readConfig(this.environment).artifacts.store);
    const scope = { root: namespace, userId: defaultUserId, sessionId: defaultSessionId };
    const content = {
      sizeBytes: largeBytes,
      open: () => Readable.from([Buffer.alloc(largeBytes)]),
    };
    const metadata = { mimeType: "application/octet-stream" };
    await store.save(scope, "large.bin", content, metadata, soon());
  }
}

/** Brings a call of the name `call`, and others where it takes them, to a step. */
export type Step = (steps: WorkerSteps, worker: WorkerProcess) => Promise<void>;

const runs: Step = async (steps) => {
  await steps.call("call", { args: { saved_bytes: largeBytes } });
  await steps.runs.haveBegun("call");
};

/** What a call can be at, as a worker's log tells it. */
export const callSteps = {
  "waits for a slot": async (steps, worker) => {
    await steps.call("other");
    await steps.runs.haveBegun("other");
    await steps.call("call");
    await worker.says("call.no_free_slot");
  },
  "gets its inputs": async (steps, worker) => {
    await steps.call("call", { references: largeInput });
    await worker.says("call.staging_inputs");
  },
  "has its sandbox made": async (steps, worker) => {
    await steps.call("call");
    await worker.says("tool.started");
  },
  runs,
  "waits for another tool": async (steps) => {
    await steps.call("call", { tool: "passes_on", args: { tool: "announces" } });
    await steps.runs.haveBegun("call");
  },
  "has its outputs saved": async (steps, worker) => {
    await runs(steps, worker);
    steps.runs.finish();
    await worker.says("tool.ended");
  },
  "is answered": async (steps, worker) => {
    await runs(steps, worker);
    steps.outlet.hold();
    steps.runs.finish();
    await worker.says("call.finished");
  },
} as const satisfies Readonly<Record<string, Step>>;

/** A way to a broker whose one direction can be held. */
class Outlet {
  readonly port: number;
  readonly #inward = new Set<Socket>();
  #isHeld = false;

  private constructor(server: Server, brokerPort: number) {
    this.port = (server.address() as AddressInfo).port;
    server.on("connection", (socket) => this.#join(socket, brokerPort));
    onTestFinished(async () => {
      for (const socket of this.#inward) socket.destroy();
      await server[Symbol.asyncDispose]();
    });
  }

  static async to(brokerPort: number): Promise<Outlet> {
    const server = createServer();
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    return new Outlet(server, brokerPort);
  }

  /** From now on nothing reaches the broker. */
  hold(): void {
    this.#isHeld = true;
    for (const socket of this.#inward) socket.pause();
  }

  /** Lets everything pass that was held. */
  release(): void {
    this.#isHeld = false;
    for (const socket of this.#inward) socket.resume();
  }

  #join(worker: Socket, brokerPort: number): void {
    const broker = connect(brokerPort, "127.0.0.1");
    this.#inward.add(worker);
    worker.on("data", (chunk) => broker.write(chunk));
    broker.on("data", (chunk) => worker.write(chunk));
    if (this.#isHeld) worker.pause();
    for (const [one, other] of [
      [worker, broker],
      [broker, worker],
    ] as const) {
      one.on("error", () => undefined).on("close", () => other.destroy());
    }
    worker.on("close", () => this.#inward.delete(worker));
  }
}
