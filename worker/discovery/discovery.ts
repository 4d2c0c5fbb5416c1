/**
 * Discovery on the wire: broadcasts the descriptions of the served tools, and answers requests.
 *
 * Every worker of a group does both: agents take the first answer, and the last broadcast.
 */
import type { BrokerSession, BrokerSubscription } from "../broker/broker.ts";
import type { ToolEntry } from "../manifest/manifest.ts";
import {
  encodeBroadcast,
  encodeFailed,
  encodeRemoved,
  type Generation,
} from "../protocol/discovery/messages.ts";
import { InvocationError } from "../protocol/errors.ts";
import { type DiscoveryKind, discoveryTopic } from "../protocol/topics.ts";
import type { Clock } from "../support/clock.ts";
import { logEvent } from "../telemetry/log-event.ts";
import type { Logger } from "../telemetry/logger.ts";
import { type Described, type DescribedTools, saysNothing } from "./described-tools.ts";
import { isForAgents, published } from "./given.ts";
import { answerRequests } from "./requests.ts";

/** Milliseconds between two broadcasts of a tool. */
export const broadcastMs = 60_000;

/** Dependencies of {@link Discovery}. */
export interface DiscoveryParts {
  readonly session: Pick<BrokerSession, "publish" | "subscribe">;
  readonly namespace: string;
  readonly tools: DescribedTools;
  /** A tool that is served. */
  readonly resolve: (toolName: string) => ToolEntry | undefined;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Runs from its construction to its disposal. Failures are logged, and concern no call. */
export class Discovery implements AsyncDisposable {
  readonly #parts: DiscoveryParts;
  readonly #stopped = new AbortController();
  readonly #subscriptions: BrokerSubscription[] = [];
  readonly #listening: Disposable;
  readonly #ended: Promise<unknown>;
  /** Messages that wait for the broker: the last one of a topic. */
  readonly #outgoing = new Map<string, Uint8Array>();
  /** Broadcasts, which are repeated; undefined for one that is too large. */
  readonly #encoded = new WeakMap<Described, Uint8Array | undefined>();
  #isSending = false;
  #sending: Promise<void> = Promise.resolve();
  #isFailing = false;

  constructor(parts: DiscoveryParts) {
    this.#parts = parts;
    this.#listening = parts.tools.onDescribed((described) => this.#announce(described));
    for (const described of parts.tools.settled) this.#announce(described);
    this.#ended = Promise.all([this.#repeat(), this.#answer("newer"), this.#answer("early")]);
  }

  /** Tells agents that tools are not served any more. */
  removed(tools: readonly string[]): void {
    for (const tool of tools) this.#send("removed", tool, encodeRemoved(tool));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopped.abort(new Error("discovery has ended"));
    this.#listening[Symbol.dispose]();
    await Promise.all(this.#subscriptions.map((heard) => heard[Symbol.asyncDispose]()));
    await Promise.all([this.#ended, this.#sending]);
  }

  async #repeat(): Promise<void> {
    const { tools, clock } = this.#parts;
    const { signal } = this.#stopped;
    for (;;) {
      await clock.sleep(broadcastMs, signal).catch(() => undefined);
      if (signal.aborted) return;
      for (const described of tools.settled) this.#broadcast(described);
      tools.retry();
    }
  }

  #announce(described: Described): void {
    const { tool, failure } = described;
    if (failure !== undefined && isForAgents(tool))
      this.#send("failed_discovery", tool.name, encodeFailed(tool.name, failure));
    this.#broadcast(described);
  }

  #broadcast(described: Described): void {
    const { tool, description, failure } = described;
    // Whoever hears of a tool calls it directly, as agents and other workers do.
    if (!isForAgents(tool) || (failure !== undefined && saysNothing(description))) return;
    if (!this.#encoded.has(described)) this.#encoded.set(described, this.#encode(described));
    const encoded = this.#encoded.get(described);
    if (encoded !== undefined) this.#send("init", tool.name, encoded);
  }

  /** A description that no message can hold is reported once. */
  #encode({ tool, description }: Described): Uint8Array | undefined {
    try {
      return encodeBroadcast(tool.name, published(tool, description));
    } catch (error) {
      if (!(error instanceof InvocationError)) throw error;
      logEvent(this.#parts.log, "discovery.too_large", { tool: tool.name, reason: error.message });
      this.#send("failed_discovery", tool.name, encodeFailed(tool.name, error));
      return undefined;
    }
  }

  #send(kind: DiscoveryKind, tool: string, payload: Uint8Array): void {
    this.#outgoing.set(discoveryTopic(this.#parts.namespace, kind, tool), payload);
    if (!this.#isSending) this.#sending = this.#sendAll();
  }

  /** One message at a time, so that discovery never fills the outbox of answers. */
  async #sendAll(): Promise<void> {
    this.#isSending = true;
    const { signal } = this.#stopped;
    for (const [topic, payload] of this.#outgoing) {
      if (signal.aborted) break;
      this.#outgoing.delete(topic);
      await this.#publish(topic, payload, signal);
    }
    this.#isSending = false;
  }

  async #publish(topic: string, payload: Uint8Array, signal: AbortSignal): Promise<void> {
    const { session, log } = this.#parts;
    try {
      await session.publish({ topic, payload, timeToLiveSeconds: broadcastMs / 1000 }, signal);
      this.#isFailing = false;
    } catch (error) {
      if (!signal.aborted && !this.#isFailing) logEvent(log, "discovery.failed", { err: error });
      this.#isFailing = true;
    }
  }

  /** Subscribes, again after a failure, and answers until the disposal. */
  async #answer(generation: Generation): Promise<void> {
    const { session, namespace, clock, log } = this.#parts;
    const { signal } = this.#stopped;
    const pattern = discoveryTopic(namespace, kinds[generation], ">");
    while (!signal.aborted) {
      try {
        const heard = await session.subscribe(pattern, signal);
        this.#subscriptions.push(heard);
        await answerRequests(this.#parts, heard, kinds[generation], generation, signal);
        return;
      } catch (error) {
        if (signal.aborted) return;
        logEvent(log, "discovery.failed", { err: error });
        await clock.sleep(broadcastMs, signal).catch(() => undefined);
      }
    }
  }
}

/** The topic that each generation asks on. */
const kinds: Readonly<Record<Generation, DiscoveryKind>> = { early: "init", newer: "init_request" };
