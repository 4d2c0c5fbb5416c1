/**
 * The agent's half of a call: publishes it, relays its statuses, awaits its answer (design document, section 2).
 */
import { BrokerError } from "../worker/broker/broker.ts";
import type { DevMessage } from "../worker/broker/dev/wire.ts";
import { agentPatienceSeconds } from "../worker/protocol/limits.ts";
import { invokeTopic, responseTopic, statusTopic } from "../worker/protocol/topics.ts";
import { type Clock, systemClock } from "../worker/support/clock.ts";
import { newUuid } from "../worker/support/ids.ts";
import { type BrokerAddress, DevClient } from "./client.ts";
import {
  type Answer,
  type ToolCall,
  decodeAnswer,
  decodeStatusText,
  defaultTimeoutSeconds,
  defaultUserId,
  encodeProbe,
  encodeRequest,
} from "./messages.ts";

/** Milliseconds before the one repetition of a call that was answered `TOOL_NOT_AVAILABLE` (as real agents). */
export const retryDelayMs = 1_000;

/** Milliseconds between two questions whether somebody serves a tool. */
const probeIntervalMs = 1_000;

/** Calls without an answer at once; further ones are refused. */
const maxPendingCalls = 10_000;

/** The agent's name unless it is given one. */
export const defaultAgentName = "harness";

/** How to connect an agent. */
export interface AgentOptions extends BrokerAddress {
  /** Spelled exactly as the worker's. */
  readonly namespace: string;
  /** Letters, digits and `_`; the answers of agents with one name reach them all, and each takes its own. */
  readonly name?: string;
  readonly clock?: Clock;
}

/** How to follow one call. */
export interface CallOptions {
  /** Told each status text, in order, before the answer. */
  readonly onStatus?: (text: string) => void;
  readonly signal?: AbortSignal;
}

/** What became of a call. */
export type CallResult = (
  | Answer
  /** Nobody answered within the tool's time and the agent's patience. */
  | { readonly kind: "no-answer"; readonly waitedSeconds: number }
) & {
  readonly correlationId: string;
  /** Milliseconds from before the publication to the answer. */
  readonly roundTripMs: number;
};

/** A call on its way. */
interface Pending {
  readonly onStatus: (text: string) => void;
  settle(answer: Uint8Array | BrokerError): void;
}

/** A connected agent. Any number of calls share its connections. Its owner disposes it; that fails the calls on their way. */
export class Agent implements AsyncDisposable {
  readonly #client: DevClient;
  readonly #namespace: string;
  readonly #name: string;
  readonly #clock: Clock;
  readonly #pending = new Map<string, Pending>();
  #lost: BrokerError | undefined;

  private constructor(client: DevClient, options: AgentOptions) {
    this.#client = client;
    this.#namespace = options.namespace;
    this.#name = options.name ?? defaultAgentName;
    this.#clock = options.clock ?? systemClock;
    void this.#listen();
  }

  /** Connects. Throws BrokerError, or the signal's reason; leaves nothing open then. */
  static async connect(options: AgentOptions, signal: AbortSignal): Promise<Agent> {
    const name = options.name ?? defaultAgentName;
    const patterns = [responseTopic, statusTopic].map((topic) =>
      topic(options.namespace, name, ">"),
    );
    return new Agent(await DevClient.connect({ ...options, name, patterns }, signal), options);
  }

  /** The id that the broker knows this agent's subscriptions under. */
  get clientId(): string {
    return this.#client.clientId;
  }

  /**
   * Calls a tool and waits for the answer; the first one counts. A call answered `TOOL_NOT_AVAILABLE` is made once more
   * after a second, under a new correlation id, as real agents do.
   *
   * Throws RequestTooLargeError, BrokerError when the connection is lost, or the signal's reason.
   */
  async call(call: ToolCall, options: CallOptions = {}): Promise<CallResult> {
    const result = await this.#attempt(call, options);
    if (result.kind !== "error" || result.code !== "TOOL_NOT_AVAILABLE") return result;
    await this.#clock.sleep(retryDelayMs, options.signal);
    return this.#attempt(call, options);
  }

  /**
   * Resolves as soon as somebody serves a tool. Asks by requests that are no calls: workers refuse them, and nothing runs.
   * Throws BrokerError, or the signal's reason.
   */
  async whenServed(tool: string, signal: AbortSignal): Promise<void> {
    const id = newUuid();
    const { promise: answered, resolve } = Promise.withResolvers<Uint8Array | BrokerError>();
    using _pending = this.#await(id, { onStatus: () => undefined, settle: resolve });
    for (;;) {
      await this.#publish(tool, id, defaultUserId, encodeProbe(id), signal);
      const answer = await this.#within(probeIntervalMs, answered, signal);
      if (answer instanceof BrokerError) throw answer;
      if (answer) return;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#client[Symbol.asyncDispose]();
  }

  async #attempt(call: ToolCall, options: CallOptions): Promise<CallResult> {
    const signal = options.signal ?? new AbortController().signal;
    const correlationId = newUuid();
    const payload = encodeRequest(correlationId, this.#name, call);
    const { promise: answered, resolve } = Promise.withResolvers<Uint8Array | BrokerError>();
    const onStatus = options.onStatus ?? (() => undefined);
    using _pending = this.#await(correlationId, { onStatus, settle: resolve });
    const sentAtMs = this.#clock.monotonicMs();
    await this.#publish(call.tool, correlationId, call.userId ?? defaultUserId, payload, signal);
    const patienceSeconds = (call.timeoutSeconds ?? defaultTimeoutSeconds) + agentPatienceSeconds;
    const answer = await this.#within(patienceSeconds * 1000, answered, signal);
    const roundTripMs = this.#clock.monotonicMs() - sentAtMs;
    if (answer instanceof BrokerError) throw answer;
    const outcome = answer
      ? decodeAnswer(answer)
      : ({ kind: "no-answer", waitedSeconds: patienceSeconds } as const);
    return { ...outcome, correlationId, roundTripMs };
  }

  /** Registers a call until it is disposed. */
  #await(correlationId: string, pending: Pending): Disposable {
    if (this.#lost) throw this.#lost;
    if (this.#pending.size >= maxPendingCalls) {
      throw new BrokerError(`${maxPendingCalls} calls have no answer yet`, { transient: true });
    }
    this.#pending.set(correlationId, pending);
    return { [Symbol.dispose]: () => void this.#pending.delete(correlationId) };
  }

  /** With the user properties of real agents. */
  async #publish(
    tool: string,
    correlationId: string,
    userId: string,
    payload: Uint8Array,
    signal: AbortSignal,
  ): Promise<void> {
    const properties = {
      replyTo: responseTopic(this.#namespace, this.#name, correlationId),
      statusTo: statusTopic(this.#namespace, this.#name, correlationId),
      clientId: this.#name,
      userId,
      timestamp: this.#clock.nowMs(),
    };
    await this.#client.publish(invokeTopic(this.#namespace, tool), payload, properties, signal);
  }

  /** What `promise` brings within `ms`, or undefined. */
  async #within<T>(ms: number, promise: Promise<T>, signal: AbortSignal): Promise<T | undefined> {
    const done = new AbortController();
    const patience = this.#clock.sleep(ms, AbortSignal.any([signal, done.signal]));
    try {
      return await Promise.race([promise, patience.then(() => undefined)]);
    } finally {
      done.abort();
    }
  }

  /** Hands out messages as long as the connection lives. Never rejects. */
  async #listen(): Promise<void> {
    try {
      for await (const message of this.#client.messages(new AbortController().signal)) {
        this.#deliver(message);
      }
    } catch (error) {
      this.#lost =
        error instanceof BrokerError
          ? error
          : new BrokerError("The agent failed", { cause: error, transient: false });
      for (const pending of this.#pending.values()) pending.settle(this.#lost);
    }
  }

  /** Answers find their call by the last level of their topic, not by their id; those to nobody's call are late. */
  #deliver(message: DevMessage): void {
    const correlationId = message.topic.slice(message.topic.lastIndexOf("/") + 1);
    const pending = this.#pending.get(correlationId);
    if (!pending) return;
    if (message.topic === responseTopic(this.#namespace, this.#name, correlationId)) {
      pending.settle(message.payload);
      return;
    }
    const text = decodeStatusText(message.payload);
    if (text !== undefined) pending.onStatus(text);
  }
}
