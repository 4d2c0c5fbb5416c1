/**
 * Keeps the queues of the served tools there, and taps on them.
 */
import type { Channel } from "amqplib";
import { backoffDelays } from "../../support/backoff.ts";
import { abortable } from "../abortable.ts";
import type { Clock } from "../../support/clock.ts";
import type { BrokerError } from "../broker.ts";
import type { BrokerLog } from "../log.ts";
import type { AmqpConnection } from "./connection.ts";
import { isConsumerTimeout, replyCodeOf } from "./failures.ts";
import type { Intake } from "./intake.ts";
import { Tap } from "./tap.ts";
import type { Topology } from "./topology.ts";

/** Bounds of the delay before a queue that cannot be used is tried again. */
const retryBackoff = { baseMs: 500, capMs: 60_000 };

/** Milliseconds a tap must have been open for its loss to start the delays from the beginning again. */
const steadyMs = 10_000;

/** What a session serves with. */
export interface ServingParts {
  readonly connection: AmqpConnection;
  readonly topology: Topology;
  readonly intake: Intake;
  readonly clock: Clock;
  readonly log: BrokerLog;
}

/** The serving half of a session. Lives as long as its connection. */
export class Serving {
  readonly #parts: ServingParts;
  /** What `serve` and `leave` said last. */
  readonly #tools = new Set<string>();
  /** By queue; a promise, so that whoever comes second waits for the first. */
  readonly #taps = new Map<string, Promise<Tap>>();
  /** Those of them that are open. */
  readonly #open = new Set<Promise<Tap>>();
  /** Delays of the queues that cannot be used, or could not lately. */
  readonly #delays = new Map<string, Generator<number, never, void>>();
  /** Queues that are being tried again. */
  readonly #restoring = new Set<string>();
  readonly #stopping = new AbortController();
  /** Aborts when nothing is to be served any more. */
  readonly #over: AbortSignal;
  #exchanges: Promise<void> | undefined;

  constructor(parts: ServingParts) {
    this.#parts = parts;
    this.#over = AbortSignal.any([this.#stopping.signal, parts.connection.ended]);
  }

  /**
   * Serves several tools. Those that the broker refuses are logged, and tried again as long as the session lives and they
   * are not left. Throws BrokerError when it refuses them all, or the signal's reason when it aborts.
   */
  async start(tools: readonly string[], signal: AbortSignal): Promise<void> {
    const { topology, intake } = this.#parts;
    const queues = new Set(tools.map((tool) => topology.queueOf(tool)));
    using _expected = intake.tapOptions.room.expect(queues.size);
    const results = await Promise.allSettled(tools.map((tool) => this.serve(tool, signal)));
    signal.throwIfAborted();
    this.#parts.connection.ended.throwIfAborted();
    const failures = new Map<string, BrokerError>();
    for (const [index, tool] of tools.entries()) {
      const result = results[index];
      if (result?.status === "rejected") failures.set(tool, result.reason as BrokerError);
    }
    const [first, ...others] = failures.values();
    if (first !== undefined && failures.size === tools.length) {
      throw others.find(({ transient }) => transient) ?? first;
    }
    for (const [tool, failure] of failures) {
      this.#tools.add(tool);
      void this.#restore(this.#parts.topology.queueOf(tool), failure);
    }
  }

  /** Whether there are tools to serve, and calls of none of them can come. */
  get isWithoutQueue(): boolean {
    return this.#tools.size > 0 && this.#open.size === 0;
  }

  /** Serves a tool, unless nothing is to be served any more. Idempotent. Throws BrokerError, or the signal's reason. */
  async serve(tool: string, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    if (this.#stopping.signal.aborted) return;
    const wasServed = this.#tools.has(tool);
    this.#tools.add(tool);
    try {
      await this.#attach(tool, signal);
    } catch (error) {
      if (!wasServed) this.#tools.delete(tool);
      throw error;
    }
  }

  /** Takes no more calls of a tool; what came is handed out. Idempotent. Throws BrokerError, or the signal's reason. */
  async leave(tool: string, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    this.#tools.delete(tool);
    // Where there is no tap yet, who opens it sees that it is not wanted.
    if (this.#taps.has(this.#parts.topology.queueOf(tool))) await this.#drop(tool, signal);
  }

  /** Takes no more from any queue, for good. Never rejects. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await Promise.all(Array.from(this.#taps, ([queue, tap]) => this.#close(queue, tap)));
  }

  async #attach(tool: string, signal: AbortSignal): Promise<void> {
    const { topology, connection } = this.#parts;
    await this.#declareExchanges(signal);
    const queue = topology.queueOf(tool);
    const declare = (channel: Channel): Promise<void> => topology.declareQueue(channel, tool);
    await connection.onChannel(`declare the queue ${queue}`, declare, signal);
    if (this.#stopping.signal.aborted) return;
    if (!this.#tools.has(tool)) return this.#drop(tool, signal);
    const tap = this.#taps.get(queue) ?? this.#openTap(queue, signal);
    await tap;
    if (this.#stopping.signal.aborted) await this.#close(queue, tap);
    else if (!this.#tools.has(tool)) await this.#drop(tool, signal);
  }

  /** Has no more calls of a tool come that is not wanted. It keeps its queue, for other workers. */
  async #drop(tool: string, signal: AbortSignal): Promise<void> {
    const { topology, connection } = this.#parts;
    if (!topology.hasOneQueue) {
      const queue = topology.queueOf(tool);
      const tap = this.#taps.get(queue);
      if (tap !== undefined) await abortable(this.#close(queue, tap), signal);
      return;
    }
    const unbind = (channel: Channel): Promise<void> => topology.unbindQueue(channel, tool);
    const doing = `take ${tool} from the queue ${topology.queueOf(tool)}`;
    await connection.onChannel(doing, unbind, signal);
  }

  /** Once for a session that serves; what went wrong is tried again. */
  #declareExchanges(signal: AbortSignal): Promise<void> {
    const { topology, connection } = this.#parts;
    const declare = (channel: Channel): Promise<void> => topology.declareExchanges(channel);
    this.#exchanges ??= connection
      .onChannel(`declare the exchange ${topology.exchange}`, declare, signal)
      .catch((error: unknown) => {
        this.#exchanges = undefined;
        throw error;
      });
    return this.#exchanges;
  }

  #openTap(queue: string, signal: AbortSignal): Promise<Tap> {
    const { connection, intake, clock } = this.#parts;
    const opening = Tap.open(connection, queue, intake.tapOptions, signal);
    this.#taps.set(queue, opening);
    const forget = (): boolean => this.#taps.get(queue) === opening && this.#taps.delete(queue);
    void opening.then(async (tap) => {
      const openedAtMs = clock.monotonicMs();
      if (this.#taps.get(queue) === opening) this.#open.add(opening);
      const cause = await tap.lost;
      this.#open.delete(opening);
      if (clock.monotonicMs() - openedAtMs >= steadyMs) this.#delays.delete(queue);
      this.#tellOfLoss(queue, cause);
      if (forget()) await this.#restore(queue, cause);
    }, forget);
    return opening;
  }

  async #close(queue: string, opening: Promise<Tap>): Promise<void> {
    if (this.#taps.get(queue) === opening) this.#taps.delete(queue);
    this.#open.delete(opening);
    try {
      await (await opening).stop();
    } catch {
      // Whoever opened it is told that it never was open.
    }
  }

  #tellOfLoss(queue: string, cause: BrokerError): void {
    const { log } = this.#parts;
    const facts = { queue, err: cause };
    if (isConsumerTimeout(cause.cause))
      log.warn(facts, "broker took unsettled calls back after its timeout");
    else log.warn(facts, "broker ended a consumer");
  }

  /** Tries a queue again until what comes through it is served, or nobody wants that any more. Never rejects. */
  async #restore(queue: string, cause: BrokerError): Promise<void> {
    if (this.#restoring.has(queue)) return;
    this.#restoring.add(queue);
    try {
      await this.#retry(queue, cause);
    } catch (error) {
      if (!this.#over.aborted) throw error;
    } finally {
      this.#restoring.delete(queue);
    }
  }

  async #retry(queue: string, cause: BrokerError): Promise<void> {
    const { clock, log } = this.#parts;
    const delays = this.#delaysOf(queue);
    for (let failure = cause; ;) {
      const tools = this.#toolsOf(queue);
      if (tools.length === 0) return;
      const delayMs = Math.round(delays.next().value);
      const code = replyCodeOf(failure.cause);
      log.warn({ tools, queue, code, delayMs, err: failure }, "queue cannot be used");
      await clock.sleep(delayMs, this.#over);
      const wanted = this.#toolsOf(queue);
      const results = await Promise.allSettled(
        wanted.map((tool) => this.#attach(tool, this.#over)),
      );
      const failed = results.find(({ status }) => status === "rejected");
      if (failed === undefined) return log.info({ queue }, "queue can be used again");
      this.#over.throwIfAborted();
      failure = (failed as PromiseRejectedResult).reason as BrokerError;
    }
  }

  #toolsOf(queue: string): readonly string[] {
    return Array.from(this.#tools).filter((tool) => this.#parts.topology.queueOf(tool) === queue);
  }

  #delaysOf(queue: string): Generator<number, never, void> {
    const delays =
      this.#delays.get(queue) ?? backoffDelays({ ...retryBackoff, random: Math.random });
    this.#delays.set(queue, delays);
    return delays;
  }
}
