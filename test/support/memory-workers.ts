/**
 * Workers in this process on a broker that redelivers, the agent that calls them, and the tool that they run.
 */
import { mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Writable } from "node:stream";
import { expect, onTestFinished, vi } from "vitest";
import { type Answer, type ToolCall, decodeAnswer, encodeRequest } from "../../harness/messages.ts";
import { createHost } from "../../worker/app.ts";
import type { Broker, OutboundMessage } from "../../worker/broker/broker.ts";
import {
  type MemoryBroker,
  type MemoryBrokerOptions,
  createMemoryBroker,
} from "../../worker/broker/memory/broker.ts";
import { reconnecting } from "../../worker/broker/reconnecting.ts";
import { readConfig } from "../../worker/config.ts";
import { invokeTopic, responseTopic } from "../../worker/protocol/topics.ts";
import { createLogger } from "../../worker/telemetry/logger.ts";
import { Worker } from "../../worker/worker.ts";
import { ToolRuns, announcingTool } from "./announcing-tool.ts";
import { HeldSandboxes } from "./held-sandboxes.ts";
import { manifestText, namespace, reachableDirectory } from "./rig.ts";

const tools = {
  repeatable: { module: "announcing", function: "announces" },
  once_only: { module: "announcing", function: "announces", idempotent: false },
};
/** Both announce their runs. */
export type MemoryTool = keyof typeof tools;

const patience = { timeout: 20_000, interval: 20 };
const agentName = "agent";

/** A worker, and what it has logged so far. */
export interface StartedWorker {
  readonly worker: Worker;
  said(): string;
}

/** Everything around the workers of one test; it ends with the test. */
export class MemoryWorkers {
  readonly base: string;
  readonly broker: MemoryBroker;
  readonly runs: ToolRuns;
  readonly sandboxes: HeldSandboxes;
  /** Answers by the names of their calls. */
  readonly answers = new Map<string, Omit<Answer, "response">[]>();

  private constructor(parts: Pick<MemoryWorkers, "base" | "broker" | "runs" | "sandboxes">) {
    this.base = parts.base;
    this.broker = parts.broker;
    this.runs = parts.runs;
    this.sandboxes = parts.sandboxes;
  }

  static async prepare(options: Partial<MemoryBrokerOptions> = {}): Promise<MemoryWorkers> {
    const base = await reachableDirectory();
    onTestFinished(() => rm(base, { recursive: true, force: true }));
    await mkdir(join(base, "tools"));
    await writeFile(join(base, "tools", announcingTool.file), announcingTool.source);
    await writeFile(join(base, "manifest.yaml"), manifestText(tools));
    const workers = new MemoryWorkers({
      base,
      broker: createMemoryBroker({ namespace, ...options }),
      runs: await ToolRuns.listen(),
      sandboxes: await HeldSandboxes.in(base),
    });
    workers.#listen();
    return workers;
  }

  /** Calls a tool under names, by which runs and answers are known. */
  publish(tool: MemoryTool, ...names: string[]): void {
    for (const name of names) this.publishCall(tool, name, {});
  }

  /** @param properties on top of `replyTo` */
  publishCall(
    tool: MemoryTool,
    name: string,
    more: Partial<ToolCall>,
    properties: OutboundMessage["properties"] = {},
  ): void {
    const args = { port: this.runs.port, name, ...more.args };
    const request = encodeRequest(name, agentName, { timeoutSeconds: 60, ...more, tool, args });
    const replyTo = responseTopic(namespace, agentName, name);
    this.broker.publish(invokeTopic(namespace, tool), request, { replyTo, ...properties });
  }

  /** @param broker what the worker connects to, instead of the broker itself */
  async startWorker(maxConcurrent: number, broker: Broker = this.broker): Promise<StartedWorker> {
    const environment = {
      SAM_NAMESPACE: namespace,
      DEV_BROKER_HOST: "not.used",
      MANIFEST_PATH: join(this.base, "manifest.yaml"),
      TOOLS_PYTHON_DIR: join(this.base, "tools"),
      SANDBOX_WORK_DIR: join(this.base, "work"),
      SANDBOX_BWRAP_BIN: this.sandboxes.bwrapBin,
      ARTIFACT_SERVICE_TYPE: "filesystem",
      ARTIFACT_BASE_PATH: join(this.base, "artifacts"),
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
    await worker.start(AbortSignal.timeout(30_000));
    return { worker, said: () => lines.join("") };
  }

  /** Waits until there are answers to these calls, and to no others. */
  async answered(...names: string[]): Promise<void> {
    await vi.waitFor(
      () => expect([...this.answers.keys()].toSorted()).toEqual(names.toSorted()),
      patience,
    );
  }

  #listen(): void {
    const heard = this.broker.subscribe(responseTopic(namespace, agentName, ">"));
    onTestFinished(() => heard[Symbol.dispose]());
    void (async () => {
      for await (const { topic, payload } of heard) {
        const name = topic.slice(topic.lastIndexOf("/") + 1);
        const { response: _, ...answer } = decodeAnswer(payload);
        this.answers.set(name, [...(this.answers.get(name) ?? []), answer]);
      }
    })();
  }
}
