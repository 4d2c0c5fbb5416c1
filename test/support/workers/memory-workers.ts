/**
 * Workers in this process on a broker in memory that redelivers, and the agent that calls them.
 */
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import type { ToolCall } from "../../../harness/messages.ts";
import type { Broker, OutboundMessage } from "../../../worker/broker/broker.ts";
import {
  type MemoryBroker,
  type MemoryBrokerOptions,
  createMemoryBroker,
} from "../../fakes/memory-broker/broker.ts";
import { FileMarks } from "../../../worker/artifacts/filesystem/marks.ts";
import { deduplicationKey } from "../../../worker/invocation/claims/ledger.ts";
import { namespace } from "./rig.ts";
import {
  type AnnouncingTool,
  type PlaceParts,
  type StartedWorker,
  WorkerPlace,
  openParts,
} from "./worker-place.ts";

/** Everything around the workers of one test; it ends with the test. */
export class MemoryWorkers extends WorkerPlace {
  readonly broker: MemoryBroker;

  private constructor(broker: MemoryBroker, parts: PlaceParts) {
    super(namespace, parts);
    this.broker = broker;
  }

  static async prepare(options: Partial<MemoryBrokerOptions> = {}): Promise<MemoryWorkers> {
    const broker = createMemoryBroker({ namespace, ...options });
    const workers = new MemoryWorkers(broker, await openParts());
    workers.#listen();
    return workers;
  }

  /** Calls a tool under names, by which runs and answers are known. */
  publish(tool: AnnouncingTool, ...names: string[]): void {
    for (const name of names) this.publishCall(tool, name, {});
  }

  /** @param properties on top of `replyTo` */
  publishCall(
    tool: AnnouncingTool,
    name: string,
    more: Partial<ToolCall>,
    properties: OutboundMessage["properties"] = {},
  ): void {
    const { topic, request, replyTo } = this.callOf(tool, name, more);
    this.broker.publish(topic, request, { replyTo, ...properties });
  }

  /** Leaves what a worker leaves that began the call and died. */
  async markBegun(tool: AnnouncingTool, name: string): Promise<void> {
    const { topic, request, replyTo } = this.callOf(tool, name);
    const key = deduplicationKey({ topic, payload: request }, replyTo);
    const marks = new FileMarks(join(this.base, "artifacts"));
    await mkdir(join(this.base, "artifacts"));
    const mark = `${Buffer.from(key, "base64").toString("hex")}.1`;
    await marks.create(mark, new Uint8Array(), AbortSignal.timeout(10_000));
  }

  /** @param broker what the worker connects to, instead of the broker itself */
  startWorker(maxConcurrent: number, broker: Broker = this.broker): Promise<StartedWorker> {
    return this.startWorkerOn(broker, maxConcurrent);
  }

  #listen(): void {
    const heard = this.broker.subscribe(this.answerPattern);
    onTestFinished(() => heard[Symbol.dispose]());
    void (async () => {
      for await (const message of heard) this.hear(message);
    })();
  }
}
