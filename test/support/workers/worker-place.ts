/**
 * Workers in this process on whatever broker a test hands them, the tool that they run, and the
 * answers that are heard.
 */
import { mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Writable } from "node:stream";
import { expect, onTestFinished, vi } from "vitest";
import {
  type Answer,
  type ToolCall,
  decodeAnswer,
  encodeRequest,
} from "../../../harness/messages.ts";
import type { Broker } from "../../../worker/broker/broker.ts";
import { reconnecting } from "../../../worker/broker/reconnecting.ts";
import { readConfig } from "../../../worker/config/config.ts";
import { invokeTopic, responseTopic } from "../../../worker/protocol/topics.ts";
import { createLogger } from "../../../worker/telemetry/logger.ts";
import { createHost } from "../../../worker/wiring/host.ts";
import { Worker } from "../../../worker/worker.ts";
import { ToolRuns, announces, announcingTool, passesOn } from "./announcing-tool.ts";
import { HeldSandboxes } from "../sandboxes/held-sandboxes.ts";
import { manifestText, reachableDirectory } from "./rig.ts";
import { sharedPreparations } from "./shared-preparations.ts";

/** Tools that announce their runs, and tools that call these: `args.tool` says which. */
export const announcingTools = {
  repeatable: announces,
  once_only: { ...announces, idempotent: false },
  passes_on: { ...passesOn, gateway: { tools: ["repeatable"] } },
  passes_on_once: { ...passesOn, gateway: { tools: ["once_only"] } },
  passes_on_again: { ...passesOn, gateway: { tools: ["once_only"] }, idempotent: true },
} as const;
export type AnnouncingTool = keyof typeof announcingTools;

const patience = { timeout: 20_000, interval: 20 };
const agentName = "agent";

/** A worker, and what it has logged so far. */
export interface StartedWorker {
  readonly worker: Worker;
  said(): string;
}

/** A call as an agent sends it. */
export interface SentCall {
  readonly topic: string;
  readonly request: Uint8Array;
  readonly replyTo: string;
}

/** What workers find around them beside their broker; it ends with the test. */
export interface PlaceParts {
  readonly base: string;
  readonly runs: ToolRuns;
  readonly sandboxes: HeldSandboxes;
}

export async function openParts(): Promise<PlaceParts> {
  const base = await reachableDirectory();
  onTestFinished(() => rm(base, { recursive: true, force: true }));
  await mkdir(join(base, "tools"));
  await writeFile(join(base, "tools", announcingTool.file), announcingTool.source);
  await writeFile(join(base, "manifest.yaml"), manifestText(announcingTools));
  return { base, runs: await ToolRuns.listen(), sandboxes: await HeldSandboxes.in(base) };
}

/** Everything around the workers of one test but their broker. */
export class WorkerPlace {
  readonly namespace: string;
  readonly base: string;
  readonly runs: ToolRuns;
  readonly sandboxes: HeldSandboxes;
  /** Answers by the names of their calls. */
  readonly answers = new Map<string, Omit<Answer, "response">[]>();

  constructor(namespace: string, { base, runs, sandboxes }: PlaceParts) {
    this.namespace = namespace;
    this.base = base;
    this.runs = runs;
    this.sandboxes = sandboxes;
  }

  /** What all answers come on. */
  get answerPattern(): string {
    return responseTopic(this.namespace, agentName, ">");
  }

  /** Where the answer to the call of a name goes. */
  replyTopic(name: string): string {
    return responseTopic(this.namespace, agentName, name);
  }

  /** A call of a tool under a name, by which its run and its answer are known. */
  callOf(tool: AnnouncingTool, name: string, more: Partial<ToolCall> = {}): SentCall {
    const args = { port: this.runs.port, name, ...more.args };
    return {
      topic: invokeTopic(this.namespace, tool),
      request: encodeRequest(name, agentName, { timeoutSeconds: 60, ...more, tool, args }),
      replyTo: this.replyTopic(name),
    };
  }

  /** Takes note of an answer. */
  hear({ topic, payload }: { readonly topic: string; readonly payload: Uint8Array }): void {
    const name = topic.slice(topic.lastIndexOf("/") + 1);
    const { response: _, ...answer } = decodeAnswer(payload);
    this.answers.set(name, [...(this.answers.get(name) ?? []), answer]);
  }

  /** Waits until there are answers to these calls, and to no others. */
  async answered(...names: string[]): Promise<void> {
    await vi.waitFor(
      () => expect([...this.answers.keys()].toSorted()).toEqual(names.toSorted()),
      patience,
    );
  }

  /**
   * Starts a worker that connects to `broker`, with one attempt per outage unless `CONNECT_RETRIES`
   * says more; it ends with the test.
   *
   * @param variables on top of the usual ones
   */
  async startWorkerOn(
    broker: Broker,
    maxConcurrent: number,
    variables: Readonly<Record<string, string>> = {},
  ): Promise<StartedWorker> {
    const environment = {
      SAM_NAMESPACE: this.namespace,
      DEV_BROKER_HOST: "not.used",
      MANIFEST_PATH: join(this.base, "manifest.yaml"),
      TOOLS_PYTHON_DIR: join(this.base, "tools"),
      // Tests take each sandbox for that of a call, and each message for an answer.
      TOOLS_DESCRIBED_BY: "manifest",
      TOOLS_DISCOVERY: "0",
      SANDBOX_WORK_DIR: join(this.base, "work"),
      SANDBOX_BWRAP_BIN: this.sandboxes.bwrapBin,
      ARTIFACT_SERVICE_TYPE: "filesystem",
      ARTIFACT_BASE_PATH: join(this.base, "artifacts"),
      SANDBOX_MIN_FREE_DISK_MB: "1",
      SANDBOX_MAX_CONCURRENT: String(maxConcurrent),
      HEALTH_PORT: "0",
      ...variables,
    };
    const lines: string[] = [];
    const output = new Writable({
      write: (chunk: Buffer, _encoding, done) => (lines.push(chunk.toString()), done()),
    });
    const log = createLogger("debug", output);
    const session = reconnecting(broker, {
      maxAttempts: Number(variables["CONNECT_RETRIES"] ?? 1),
      backoff: { baseMs: 1, capMs: 100 },
      log,
    });
    const host = { ...createHost(log, environment), preparations: sharedPreparations };
    const worker = new Worker(readConfig(environment), host, { broker: session });
    onTestFinished(() => worker[Symbol.asyncDispose]());
    await worker.start(AbortSignal.timeout(30_000));
    return { worker, said: () => lines.join("") };
  }
}
