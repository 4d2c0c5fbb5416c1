/**
 * Keeps the queues of the served tools there, and taps on them.
 */
import type { Channel, ConsumeMessage } from "amqplib";
import type { Clock } from "../../support/clock.ts";
import { abortable } from "../../support/within.ts";
import type { BrokerError } from "../broker.ts";
import type { BrokerLog } from "../log.ts";
import { QueueWatch } from "../queue-watch.ts";
import { serveAll } from "../serve-all.ts";
import { Strays } from "../strays.ts";
import type { AmqpConnection } from "./connection.ts";
import { BindingWatch } from "./binding-watch.ts";
import { ConsumerEndedError, isConsumerTimeout, isNotFound } from "./failures.ts";
import type { Intake } from "./intake.ts";
import { Restoring } from "./restoring.ts";
import { Tap, type TapOptions } from "./tap.ts";
import type { Topology } from "./topology.ts";

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
  readonly #stopping = new AbortController();
  /** Aborts when nothing is to be served any more. */
  readonly #over: AbortSignal;
  readonly #restoring: Restoring;
  readonly #watch: QueueWatch;
  readonly #strays: Strays;
  readonly #bindings: BindingWatch;
  #exchanges: Promise<void> | undefined;

  constructor(parts: ServingParts) {
    this.#parts = parts;
    const { connection, clock, log } = parts;
    const { ended } = connection;
    this.#over = AbortSignal.any([this.#stopping.signal, ended]);
    this.#restoring = new Restoring({
      toolsOf: (queue) => this.#toolsOf(queue),
      attach: (tool) => this.#attach(tool, this.#over),
      over: this.#over,
      clock,
      log,
    });
    this.#watch = new QueueWatch({ clock, ended, giveUp: (cause) => connection.lose(cause) });
    this.#bindings = new BindingWatch({
      check: (signal) => this.#checkExchange(signal),
      bind: (signal) => this.#bindAgain(signal),
      over: this.#over,
      clock,
      log,
    });
    this.#strays = new Strays({ isServed: (tool) => this.#tools.has(tool), log, ended });
  }

  /**
   * Serves several tools. Those that the broker refuses or is slow with are logged, and tried again as long as the session
   * lives and they are not left. Throws BrokerError when none can be served, or the signal's reason when it aborts.
   */
  async start(tools: readonly string[], signal: AbortSignal): Promise<void> {
    const { connection, topology, intake, clock } = this.#parts;
    const queues = new Set(tools.map((tool) => topology.queueOf(tool)));
    using _expected = intake.tapOptions.room.expect(queues.size);
    const parts = {
      clock,
      serve: (tool: string, over: AbortSignal) => this.serve(tool, over),
      serveLater: (tool: string, failure: BrokerError) => {
        this.#tools.add(tool);
        void this.#restoring.restore(topology.queueOf(tool), failure);
      },
    };
    await serveAll(tools, parts, AbortSignal.any([signal, connection.ended]));
  }

  /** Whether there are tools to serve, and calls of none of them can come. */
  get isWithoutQueue(): boolean {
    return !this.#stopping.signal.aborted && this.#tools.size > 0 && this.#open.size === 0;
  }

  /** Whether calls of no tool can come because an operator removed what they come through. */
  get isWithoutBindings(): boolean {
    return this.#bindings.isMissing;
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
    } finally {
      this.#watchQueues();
    }
  }

  /** Takes no more calls of a tool; what came is handed out. Idempotent. Throws BrokerError, or the signal's reason. */
  async leave(tool: string, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    this.#tools.delete(tool);
    this.#strays.expect(tool);
    this.#watchQueues();
    // Where there is no tap yet, who opens it sees that it is not wanted.
    if (this.#taps.has(this.#parts.topology.queueOf(tool))) await this.#drop(tool, signal);
  }

  /** Takes no more from any queue, for good. Never rejects. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#watchQueues();
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

  async #checkExchange(signal: AbortSignal): Promise<void> {
    const { topology, connection } = this.#parts;
    if (this.#tools.size === 0) return;
    const check = (channel: Channel): Promise<void> => topology.checkExchange(channel);
    try {
      await connection.onChannel(`find the exchange ${topology.exchange}`, check, signal);
    } catch (error) {
      if (isNotFound(error)) throw error;
    }
  }

  /** Declares anew what the open queues need. What is there stays as it is. */
  async #bindAgain(signal: AbortSignal): Promise<void> {
    const { topology, connection } = this.#parts;
    const tools = Array.from(this.#tools).filter((tool) => this.#taps.has(topology.queueOf(tool)));
    if (tools.length === 0) return;
    this.#exchanges = undefined;
    await this.#declareExchanges(signal);
    for (const tool of tools) {
      const declare = (channel: Channel): Promise<void> => topology.declareQueue(channel, tool);
      await connection.onChannel(`bind the queue ${topology.queueOf(tool)}`, declare, signal);
      if (!this.#tools.has(tool) && topology.hasOneQueue) await this.#drop(tool, signal);
    }
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
    const { connection, clock } = this.#parts;
    const opening = Tap.open(connection, queue, this.#tapOptions, signal);
    this.#taps.set(queue, opening);
    const forget = (): boolean => this.#taps.get(queue) === opening && this.#taps.delete(queue);
    void opening.then(async (tap) => {
      const openedAtMs = clock.monotonicMs();
      if (this.#taps.get(queue) === opening) this.#open.add(opening);
      this.#watchQueues();
      const cause = await tap.lost;
      this.#open.delete(opening);
      this.#watchQueues();
      if (clock.monotonicMs() - openedAtMs >= steadyMs) this.#restoring.forget(queue);
      await this.#tellOfLoss(queue, cause);
      if (forget()) await this.#restoring.restore(queue, cause);
    }, forget);
    return opening;
  }

  get #tapOptions(): TapOptions {
    const { topology, intake } = this.#parts;
    const { tapOptions } = intake;
    if (!topology.hasOneQueue) return tapOptions;
    const onCall = (tap: Tap, call: ConsumeMessage): void => {
      this.#notice(tap.queue, call);
      tapOptions.onCall(tap, call);
    };
    return { ...tapOptions, onCall };
  }

  /** A call came into the queue that is this worker's alone: has no more of them come if its tool is not served. */
  #notice(queue: string, { fields }: ConsumeMessage): void {
    const tool = this.#parts.topology.toolOf(fields.routingKey);
    if (tool === undefined) return;
    this.#strays.notice(tool, queue, async (signal) => {
      await this.#drop(tool, signal);
      // Served meanwhile, by a command that may have overtaken this one.
      if (this.#tools.has(tool)) await this.#attach(tool, signal);
    });
  }

  /** To be called after every change of the tools and the open taps. */
  #watchQueues(): void {
    this.#watch.tell(this.isWithoutQueue);
  }

  async #close(queue: string, opening: Promise<Tap>): Promise<void> {
    if (this.#taps.get(queue) === opening) this.#taps.delete(queue);
    this.#open.delete(opening);
    this.#watchQueues();
    try {
      await (await opening).stop();
    } catch {
      // Whoever opened it is told that it never was open.
    }
  }

  /** Never rejects. */
  async #tellOfLoss(queue: string, cause: BrokerError): Promise<void> {
    const { log } = this.#parts;
    const facts = { queue, err: cause };
    const isTimeout =
      cause instanceof ConsumerEndedError
        ? cause.hadCalls && (await this.#isThere(queue))
        : isConsumerTimeout(cause.cause);
    if (isTimeout) log.warn(facts, "broker took unsettled calls back after its timeout");
    else log.warn(facts, "broker ended a consumer");
  }

  async #isThere(queue: string): Promise<boolean> {
    const { connection } = this.#parts;
    const find = async (channel: Channel): Promise<void> => void (await channel.checkQueue(queue));
    try {
      await connection.onChannel(`find the queue ${queue}`, find, connection.ended);
      return true;
    } catch (error) {
      return !isNotFound(error);
    }
  }

  #toolsOf(queue: string): readonly string[] {
    return Array.from(this.#tools).filter((tool) => this.#parts.topology.queueOf(tool) === queue);
  }
}
