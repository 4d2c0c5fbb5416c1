/**
 * The agent's half of a call, over any broker: publishes it, relays its statuses, awaits its answer
 * (design document, section 2).
 */
import type {
  Broker,
  BrokerSession,
  BrokerSubscription,
  PublishOutcome,
} from "../worker/broker/broker.ts";
import { agentPatienceSeconds } from "../worker/protocol/limits.ts";
import type { StatusListener } from "../worker/protocol/messages/status-details.ts";
import { type Clock, systemClock } from "../worker/support/clock.ts";
import { newId, newUuid } from "../worker/support/ids.ts";
import { after, onAbort } from "../worker/support/timeout.ts";
import { type BrokerAddress, openDevBroker } from "./client/broker-choice.ts";
import { cancelAtAbort } from "./client/cancel-at-abort.ts";
import { connectionEnd } from "./client/connection-end.ts";
import { PendingCalls } from "./client/pending-calls.ts";
import { RequestPublisher } from "./client/request-publisher.ts";
import { defaultTimeoutSeconds, defaultUserId } from "./options/defaults.ts";
import {
  type Answer,
  type ToolCall,
  decodeAnswer,
  encodeProbe,
  encodeRequest,
  inboxPattern,
} from "./messages.ts";

/**
 * Milliseconds before the one repetition of a call that no worker was there for (as real agents).
 */
export const retryDelayMs = 1_000;

/**
 * Milliseconds between two questions whether somebody serves a tool: twice as many after each that
 * the broker may keep for whoever comes, up to the last.
 */
const probeIntervalMs = { first: 1_000, last: 16_000 } as const;

/**
 * How long a question is worth keeping: who comes before the next one finds it, and later ones not
 * all there ever were.
 */
const probeLife = { timeToLiveSeconds: 40 } as const;

/** The agent's name unless it is given one. */
export const defaultAgentName = "harness";

/** Who the agent is. */
export interface AgentOptions {
  /** Spelled exactly as the worker's. */
  readonly namespace: string;
  /** Letters, digits and `_`. */
  readonly name?: string;
  /**
   * What the agent is called in the topics of its answers, as a name; its name unless given.
   * Answers reach every agent of one inbox, and each takes its own.
   */
  readonly inbox?: string;
  readonly clock?: Clock;
}

/** How to follow one call. */
export interface CallOptions {
  /** Told each status, in order, before the answer. What it throws fails the call. */
  readonly onStatus?: StatusListener;
  /** Cancels the call, and goes on waiting for its answer. */
  readonly cancel?: AbortSignal;
  /** Cancels the call, and ends the wait when that is sent, within a second. */
  readonly signal?: AbortSignal;
}

/** Why a call has no answer. */
export interface NoAnswer {
  readonly kind: "no-answer";
  /** The tool's time and the agent's patience; 0 when there was nothing to wait for. */
  readonly waitedSeconds: number;
  /** Whether the broker had nobody to give the call to, now or later. */
  readonly isUnroutable: boolean;
}

/** What became of a call. */
export type CallResult = (Answer | NoAnswer) & {
  readonly correlationId: string;
  /** Milliseconds from before the publication to the answer. */
  readonly roundTripMs: number;
};

/**
 * A connected agent. Any number of calls share its session. Its owner disposes it; that fails the
 * calls on their way.
 *
 * Over a broker that reconnects, calls wait while there is no connection, in their time; an answer
 * that is published meanwhile reaches nobody. When the session is lost for good, the calls fail,
 * and so do all later ones.
 */
export class Agent implements AsyncDisposable {
  readonly #session: BrokerSession;
  readonly #inbox: BrokerSubscription;
  readonly #owned: AsyncDisposable;
  readonly #name: string;
  readonly #clock: Clock;
  readonly #calls: PendingCalls;
  readonly #requests: RequestPublisher;

  private constructor(
    session: BrokerSession,
    inbox: BrokerSubscription,
    owned: AsyncDisposable,
    options: AgentOptions,
  ) {
    this.#session = session;
    this.#inbox = inbox;
    this.#owned = owned;
    this.#name = options.name ?? defaultAgentName;
    this.#clock = options.clock ?? systemClock;
    const { namespace } = options;
    const inboxName = inboxOf(options);
    this.#calls = new PendingCalls(namespace, inboxName);
    this.#requests = new RequestPublisher({
      ...{ session, namespace, inbox: inboxName },
      ...{ agentName: this.#name, clock: this.#clock },
    });
    void this.#listen();
  }

  /**
   * Connects to a DevBroker, by one attempt. Throws BrokerError, or the signal's reason; leaves
   * nothing open then.
   */
  static async connect(
    { host, port, ...options }: AgentOptions & BrokerAddress,
    signal: AbortSignal,
  ): Promise<Agent> {
    const { namespace, name = defaultAgentName } = options;
    return Agent.on(await openDevBroker({ host, port }, { namespace, name }), options, signal);
  }

  /**
   * Connects to any broker. Throws BrokerError, or the signal's reason; leaves nothing open then.
   */
  static async on(broker: Broker, options: AgentOptions, signal: AbortSignal): Promise<Agent> {
    await using stack = new AsyncDisposableStack();
    const session = stack.use(await broker.connect([], signal));
    const pattern = inboxPattern(options.namespace, inboxOf(options));
    const inbox = stack.use(await session.subscribe(pattern, signal));
    return new Agent(session, inbox, stack.move(), options);
  }

  /**
   * Calls a tool and waits for the answer; the first one counts. A call answered
   * `TOOL_NOT_AVAILABLE`, or that the broker has nobody for, is made once more after a second,
   * under a new correlation id, as real agents do.
   *
   * Throws RequestTooLargeError, BrokerError when the connection is lost for good, what `onStatus`
   * throws, or the signal's reason.
   */
  async call(call: ToolCall, options: CallOptions = {}): Promise<CallResult> {
    const result = await this.#attempt(call, options);
    const isCancelled = (): boolean => options.cancel?.aborted === true;
    if (!isWithoutWorker(result) || isCancelled()) return result;
    const signals = [options.signal, options.cancel].filter((each) => each !== undefined);
    await this.#clock.sleep(retryDelayMs, AbortSignal.any(signals)).catch(() => undefined);
    options.signal?.throwIfAborted();
    return isCancelled() ? result : this.#attempt(call, options);
  }

  /**
   * Resolves as soon as somebody serves a tool. Throws BrokerError, or the signal's reason.
   *
   * @param onRefused told, each time, why a worker that answers for the tool does not serve it
   */
  async whenServed(
    tool: string,
    signal: AbortSignal,
    onRefused: (reason: string) => void = () => undefined,
  ): Promise<void> {
    for (;;) {
      const answer = await this.ask(tool, signal);
      if (answer.kind !== "error" || answer.code !== "TOOL_NOT_AVAILABLE") return;
      onRefused(answer.message);
      await this.#clock.sleep(probeIntervalMs.first, signal);
    }
  }

  /**
   * What a worker says to a request for a tool that is no call: `TOOL_NOT_AVAILABLE` with the
   * reason if it does not serve the tool, another error if it does. Nothing runs. Asks until it has
   * an answer. Throws BrokerError, or the signal's reason.
   */
  async ask(tool: string, signal: AbortSignal): Promise<Answer> {
    const id = newUuid();
    using pending = this.#calls.open(id);
    const payload = encodeProbe(id);
    let intervalMs: number = probeIntervalMs.first;
    for (;;) {
      const message = { id, payload, userId: defaultUserId, ...probeLife };
      const outcome = await this.#requests.publish(tool, message, signal);
      const answer = await this.#within(intervalMs, () => pending.answered, signal);
      if (answer instanceof Error) throw answer;
      if (answer) return decodeAnswer(answer);
      // The question may wait in a queue; or the broker took it for somebody who only listens, or
      // for nobody.
      const isKept = outcome === "confirmed" && this.#session.redelivers;
      intervalMs = isKept ? Math.min(2 * intervalMs, probeIntervalMs.last) : probeIntervalMs.first;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#owned[Symbol.asyncDispose]();
  }

  async #attempt(call: ToolCall, options: CallOptions): Promise<CallResult> {
    const signal = options.signal ?? new AbortController().signal;
    signal.throwIfAborted();
    const correlationId = newUuid();
    const userId = call.userId ?? defaultUserId;
    const payload = encodeRequest(correlationId, this.#name, call);
    using pending = this.#calls.open(correlationId, options.onStatus);
    const sentAtMs = this.#clock.monotonicMs();
    const waitedSeconds = (call.timeoutSeconds ?? defaultTimeoutSeconds) + agentPatienceSeconds;
    await using _cancelling = cancelAtAbort([options.signal, options.cancel], (within) =>
      this.#requests.cancel({ id: correlationId, userId }, within),
    );
    const { traceparent } = call;
    const request = { id: correlationId, payload, userId, traceparent };
    using publishing = this.#requests.begin(call.tool, request);
    const work = async (): Promise<Uint8Array | Error | PublishOutcome> => {
      // An answer says more than the confirmation, which can be late.
      const first = await Promise.race([publishing.outcome, pending.answered]);
      return first === "confirmed" ? pending.answered : first;
    };
    const answer = await this.#within(waitedSeconds * 1000, work, signal);
    const roundTripMs = this.#clock.monotonicMs() - sentAtMs;
    if (answer instanceof Error) throw answer;
    return { ...read(answer, waitedSeconds), correlationId, roundTripMs };
  }

  /** What `work` brings within `ms`, or undefined. */
  async #within<T>(
    ms: number,
    work: () => Promise<T>,
    signal: AbortSignal,
  ): Promise<T | undefined> {
    const over = Promise.withResolvers<undefined>();
    using _timer = after(ms, this.#clock, () => over.resolve(undefined));
    using _abort = onAbort(signal, () => over.reject(signal.reason));
    return await Promise.race([work(), over.promise]);
  }

  /** Hands out messages as long as the session lives. Never rejects. */
  async #listen(): Promise<void> {
    for await (const message of this.#inbox) this.#calls.deliver(message);
    this.#calls.fail(connectionEnd(await this.#session.closed));
  }
}

function inboxOf({ inbox, name = defaultAgentName }: AgentOptions): string {
  return inbox ?? name;
}

/** An inbox that no other agent has. */
export function newInbox(): string {
  return `${defaultAgentName}_${newId()}`;
}

/** @param answer undefined when none came in time */
function read(
  answer: Uint8Array | PublishOutcome | undefined,
  waitedSeconds: number,
): Answer | NoAnswer {
  if (answer instanceof Uint8Array) return decodeAnswer(answer);
  const isUnroutable = answer === "unroutable";
  return { kind: "no-answer", waitedSeconds: isUnroutable ? 0 : waitedSeconds, isUnroutable };
}

/** Whether a call came to no worker that could have run it: another attempt harms nobody. */
function isWithoutWorker(result: CallResult): boolean {
  return result.kind === "no-answer"
    ? result.isUnroutable
    : result.kind === "error" && result.code === "TOOL_NOT_AVAILABLE";
}
