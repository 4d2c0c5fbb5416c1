/**
 * The calls of one queue: the flows that they come through, bound again whenever the broker ends them.
 */
import { backoffDelays } from "../../support/backoff.ts";
import { type Clock, systemClock } from "../../support/clock.ts";
import { BrokerError } from "../broker.ts";
import type { BrokerLog } from "../log.ts";
import type { SolaceConnection } from "./connection.ts";
import type { Flow, FlowOptions } from "./flow.ts";
import { subcodeNameOf } from "./library.ts";
import type { Queues } from "./queues.ts";

/** Milliseconds between attempts to get what the broker refuses: bounds of the first and of the last delays. */
const retryDelays = { baseMs: 200, capMs: 30_000 } as const;

/** Milliseconds that a queue must have been had for the delays to start from the beginning again. */
const steadyMs = 10_000;

/** Who is told of the flows. */
export interface SourceListener extends Pick<FlowOptions, "onMessage"> {
  /** A flow may be opened from now on. */
  onBound(flow: Flow): void;
  /** A flow is to be left alone from now on; where `isLost`, the broker has taken back what it brought. */
  onGone(flow: Flow, isLost: boolean): void;
}

/** What a source works with. */
export interface SourceParts {
  readonly connection: SolaceConnection;
  readonly queues: Pick<Queues, "bind" | "attract">;
  readonly listener: SourceListener;
  readonly log: BrokerLog;
  readonly clock?: Clock;
}

/**
 * One queue, as long as the session serves tools through it. There is one flow, and a further one while no other can take
 * messages. A flow that is spent makes room for a new one.
 *
 * A queue that was had and is lost is asked for again after a delay, until it is had, left, or the connection ends: one
 * queue that is down is no reason to take no more calls from the others.
 */
export class Source {
  readonly queue: string;
  readonly #parts: SourceParts;
  readonly #clock: Clock;
  readonly #flows = new Set<Flow>();
  readonly #tools = new Set<string>();
  /** Those whose calls are known to come into the queue. */
  readonly #attracted = new Set<string>();
  /** The attempt to get what is wanted that was made last; they follow one another. */
  #attempt: Promise<void> = Promise.resolve();
  /** Ends the delays between attempts. */
  #stopping = new AbortController();
  #delays = freshDelays();
  #completeAtMs = -Infinity;
  /** The `#stopping` that ends the retries under way, if there are any. */
  #retrying: AbortSignal | undefined;
  #isExtending = false;
  #isLeaving = false;

  constructor(queue: string, parts: SourceParts) {
    this.queue = queue;
    this.#parts = parts;
    this.#clock = parts.clock ?? systemClock;
  }

  /** Whether calls are wanted of it. */
  get isWanted(): boolean {
    return this.#tools.size > 0;
  }

  /** Whether calls may come, now or when there is room. */
  get isBound(): boolean {
    return this.#flows.size > 0;
  }

  /** Takes the calls of a tool. Idempotent. Throws BrokerError, or the signal's reason when it aborts. */
  async serve(toolName: string, signal: AbortSignal): Promise<void> {
    const wasServed = this.#tools.has(toolName);
    this.#want(toolName);
    try {
      await this.#approach(signal);
    } catch (error) {
      if (!wasServed) await this.#forget(toolName);
      signal.throwIfAborted();
      throw error;
    }
  }

  /** Takes the calls of a tool as soon as it can, since it could not because of `failure`. */
  serveLater(toolName: string, failure: BrokerError): void {
    this.#want(toolName);
    void this.#retry(failure);
  }

  /** Takes the calls of a tool no more, though those of others may come through the same queue. Throws BrokerError. */
  async repel(toolName: string, topic: string, signal: AbortSignal): Promise<void> {
    const [flow] = this.#flows;
    if (flow === undefined) {
      const message = `The queue ${this.queue} is not bound to for now`;
      throw new BrokerError(message, { transient: true });
    }
    this.#tools.delete(toolName);
    this.#attracted.delete(toolName);
    await flow.repel(topic, signal);
  }

  /** Takes no more; flows whose messages are not all settled stay until they are. Never rejects. */
  async leave(): Promise<void> {
    this.#stop();
    await settled(this.#attempt);
    if (!this.#isLeaving) return;
    const flows = [...this.#flows];
    for (const flow of flows) {
      this.#parts.listener.onGone(flow, false);
      flow.setOpen(false);
    }
    await Promise.all(flows.map((flow) => this.tidy(flow)));
  }

  /** Lets the queue go; the broker takes back what is not settled. Never rejects. */
  async close(): Promise<void> {
    this.#stop();
    await settled(this.#attempt);
    await Promise.all(Array.from(this.#flows, (flow) => this.#drop(flow)));
  }

  /** Lets a flow go that has served its turn: to be called when one of its messages was settled. Never rejects. */
  async tidy(flow: Flow): Promise<void> {
    if (!this.#flows.has(flow)) return;
    if (this.#isLeaving) {
      if (flow.held === 0) await this.#drop(flow);
    } else if (flow.isSpent) {
      await Promise.all([this.#drop(flow), this.extend()]);
    }
  }

  /** Sees to it that some flow can take messages. Never rejects. */
  async extend(): Promise<void> {
    if (this.#isLeaving || this.#isRetrying || this.#isExtending || this.#canTake) return;
    this.#isExtending = true;
    try {
      await this.#approach(this.#parts.connection.ended);
    } catch (error) {
      void this.#retry(error as BrokerError);
    } finally {
      this.#isExtending = false;
    }
  }

  get #canTake(): boolean {
    return this.#flows.values().some((flow) => flow.canTake);
  }

  #approach(signal: AbortSignal): Promise<void> {
    const attempt = settled(this.#attempt).then(() => this.#complete(signal));
    this.#attempt = attempt;
    return attempt;
  }

  /** Gets what is missing. */
  async #complete(signal: AbortSignal): Promise<void> {
    if (this.#isLeaving) return;
    if (!this.#canTake) await this.#bind(signal);
    const [flow] = this.#flows;
    if (flow === undefined) return;
    for (const tool of this.#tools.difference(this.#attracted)) {
      await this.#parts.queues.attract(flow, tool, signal);
      this.#attracted.add(tool);
    }
    this.#completeAtMs = this.#clock.monotonicMs();
  }

  async #bind(signal: AbortSignal): Promise<void> {
    const { connection, queues, listener } = this.#parts;
    const { onMessage } = listener;
    const flow = await queues.bind(connection, { queue: this.queue, onMessage }, signal);
    if (this.#isLeaving) return flow.close();
    this.#flows.add(flow);
    void flow.lost.then((cause) => this.#lose(flow, cause));
    listener.onBound(flow);
  }

  /** Never rejects. */
  async #drop(flow: Flow): Promise<void> {
    this.#flows.delete(flow);
    this.#parts.listener.onGone(flow, false);
    await flow.close();
  }

  #want(toolName: string): void {
    this.#tools.add(toolName);
    if (!this.#isLeaving) return;
    this.#isLeaving = false;
    for (const flow of this.#flows) this.#parts.listener.onBound(flow);
  }

  async #forget(toolName: string): Promise<void> {
    this.#tools.delete(toolName);
    if (this.#tools.size === 0) await this.leave();
  }

  #lose(flow: Flow, cause: BrokerError): void {
    if (!this.#flows.delete(flow)) return;
    // It may be another queue the next time, without the former one's subscriptions.
    this.#attracted.clear();
    this.#parts.listener.onGone(flow, true);
    void this.#retry(cause);
  }

  get #isRetrying(): boolean {
    return this.#retrying === this.#stopping.signal;
  }

  /** Never rejects. */
  async #retry(first: BrokerError): Promise<void> {
    if (this.#isRetrying || this.#isLeaving) return;
    const stopping = this.#stopping.signal;
    this.#retrying = stopping;
    const over = AbortSignal.any([stopping, this.#parts.connection.ended]);
    if (this.#clock.monotonicMs() - this.#completeAtMs >= steadyMs) this.#delays = freshDelays();
    let failure = first;
    try {
      while (this.#isLacking) {
        const delayMs = Math.round(this.#delays.next().value);
        this.#tell(failure, delayMs);
        await this.#clock.sleep(delayMs, over);
        try {
          await this.#approach(this.#parts.connection.ended);
        } catch (error) {
          failure = error as BrokerError;
        }
        over.throwIfAborted();
      }
      this.#parts.log.info(this.#facts, "queue can be used again");
    } catch {
      // Left, or gone with the connection.
    } finally {
      if (this.#retrying === stopping) this.#retrying = undefined;
    }
  }

  get #isLacking(): boolean {
    return !this.#canTake || !this.#tools.isSubsetOf(this.#attracted);
  }

  get #facts(): object {
    return { queue: this.queue, tools: [...this.#tools] };
  }

  #tell(failure: BrokerError, delayMs: number): void {
    const code = subcodeNameOf(failure.cause);
    this.#parts.log.warn({ ...this.#facts, code, delayMs, err: failure }, "queue cannot be used");
  }

  #stop(): void {
    this.#isLeaving = true;
    this.#tools.clear();
    this.#attracted.clear();
    this.#stopping.abort();
    this.#stopping = new AbortController();
  }
}

function freshDelays(): Generator<number, never, void> {
  return backoffDelays({ ...retryDelays, random: Math.random });
}

/** Waits for the end of something that others take care of. */
async function settled(work: Promise<unknown>): Promise<void> {
  await work.catch(() => {});
}
