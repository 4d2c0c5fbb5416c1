/**
 * Workers in this process on a broker in memory that redelivers, and the agent that calls them.
 */
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { expect, onTestFinished } from "vitest";
import type { ToolCall } from "../../../harness/messages.ts";
import type {
  Broker,
  BrokerSession,
  Delivery,
  OutboundMessage,
} from "../../../worker/broker/broker.ts";
import {
  type MemoryBroker,
  type MemoryBrokerOptions,
  createMemoryBroker,
} from "../../fakes/memory-broker/broker.ts";
import { FileMarks } from "../../../worker/artifacts/filesystem/marks.ts";
import { deduplicationKey } from "../../../worker/invocation/claims/ledger.ts";
import { cancelTopic } from "../../../worker/protocol/topics.ts";
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

  /** Cancels the call of a name as its caller does, or as the caller of another call. */
  cancel(name: string, caller = name): void {
    const replyTo = this.replyTopic(caller);
    this.broker.publish(cancelTopic(this.namespace, name), Buffer.from(""), { replyTo });
  }

  /** A session that serves the tool as a worker does, and the first call that it gets. */
  async take(tool: AnnouncingTool): Promise<[BrokerSession, Delivery]> {
    const session = await this.broker.connect([tool], new AbortController().signal);
    for await (const delivery of session.deliveries) return [session, delivery];
    throw new Error("the session has ended");
  }

  /** Has a worker that nobody hears of take the first call and die. */
  async takeAndDie(tool: AnnouncingTool): Promise<void> {
    const [session] = await this.take(tool);
    await session[Symbol.asyncDispose]();
  }

  /**
   * Expects that the broker has no call left: the next worker gets one that is published later, and
   * nothing before it.
   */
  async expectAllSettled(tool: AnnouncingTool): Promise<void> {
    this.publish(tool, "later");
    const [session, delivery] = await this.take(tool);
    expect(Buffer.from(delivery.payload).toString()).toContain('"id":"later"');
    await delivery.settle("accepted");
    await session[Symbol.asyncDispose]();
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
