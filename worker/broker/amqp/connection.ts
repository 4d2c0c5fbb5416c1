/**
 * One connection to RabbitMQ, and the channels on it.
 */
import type { Channel, ChannelModel, ConfirmChannel } from "amqplib";
import { abortable } from "../../support/within.ts";
import { logEvent } from "../../telemetry/log-event.ts";
import { BrokerError, type SessionEnd } from "../broker.ts";
import type { BrokerLog } from "../log.ts";
import { commandFailure, textOf } from "./failures.ts";
import { type Login, type LoginOptions, logIn } from "./login.ts";

/**
 * Milliseconds for the answer to a command; queues of a cluster that elects a leader take seconds.
 */
const commandTimeoutMs = 30_000;

/** Milliseconds for the broker to say goodbye, so that what was settled last has surely arrived. */
const closeTimeoutMs = 5_000;

/** Where to connect, as whom, and who is told. */
export interface ConnectionOptions extends LoginOptions {
  readonly log: BrokerLog;
}

/** An open connection. Its owner disposes it; a connection that is lost disposes itself. */
export class AmqpConnection implements AsyncDisposable {
  /** Fulfils when the connection ended; never rejects. */
  readonly closed: Promise<SessionEnd>;
  readonly #model: ChannelModel;
  readonly #socket: AbortController;
  readonly #log: BrokerLog;
  readonly #end = Promise.withResolvers<SessionEnd>();
  readonly #ended = new AbortController();
  /**
   * Aborts when there is nobody to say goodbye to any more: amqplib goes on waiting for the answer.
   */
  readonly #gone = new AbortController();
  /** Those that are open, and those that are being closed, by the end of that. */
  readonly #channels = new Map<Channel, Promise<void> | undefined>();
  readonly #farewells = new WeakMap<Channel, () => Promise<unknown>>();
  #isBlocked = false;
  #closing: Promise<void> | undefined;

  private constructor({ model, socket }: Login, log: BrokerLog) {
    this.#model = model;
    this.#socket = socket;
    this.#log = log;
    this.closed = this.#end.promise;
    model.on("error", (error: unknown) => this.lose(lost(error)));
    // Comes alone when an operator closes the connection, or the whole broker.
    model.on("close", (error?: unknown) => {
      this.#gone.abort();
      this.lose(lost(error));
    });
    model.on("blocked", (why: string) => this.#setBlocked(true, why));
    model.on("unblocked", () => this.#setBlocked(false));
  }

  /**
   * Connects and logs in. Throws BrokerError, or the signal's reason when it aborts; leaves nothing
   * open then.
   */
  static async open(options: ConnectionOptions, signal: AbortSignal): Promise<AmqpConnection> {
    return new AmqpConnection(await logIn(options, signal), options.log);
  }

  /** Aborts when the connection ended, with a BrokerError as its reason. */
  get ended(): AbortSignal {
    return this.#ended.signal;
  }

  /** Whether the broker takes no messages at the moment, for want of memory or disk. */
  get isBlocked(): boolean {
    return this.#isBlocked;
  }

  /**
   * A channel. The broker closes it when it refuses a command, which says why. Throws BrokerError.
   */
  async openChannel(signal: AbortSignal): Promise<Channel> {
    return this.#opened(() => this.#model.createChannel(), signal);
  }

  /** A channel that tells what became of the messages published on it. Throws BrokerError. */
  async openConfirmChannel(signal: AbortSignal): Promise<ConfirmChannel> {
    return this.#opened(() => this.#model.createConfirmChannel(), signal);
  }

  /** From now on the connection is lost when the broker closes this channel. */
  rely(channel: Channel): void {
    // There is no other way for a channel to close than this, its release, and the end of the
    // connection.
    channel.on("error", (error: unknown) => this.lose(lost(error)));
  }

  /**
   * Has something done first when a channel is released, which is not when the broker closes it.
   */
  beforeRelease(channel: Channel, farewell: () => Promise<unknown>): void {
    this.#farewells.set(channel, farewell);
  }

  /** Closes a channel; one that is closed already is as good. Never rejects. */
  async release(channel: Channel): Promise<void> {
    if (!this.#channels.has(channel)) return;
    const closing = this.#channels.get(channel) ?? this.#closeChannel(channel);
    this.#channels.set(channel, closing);
    await closing;
    this.#channels.delete(channel);
  }

  /**
   * Does something on a channel of its own, which alone is lost when the broker refuses it. Throws
   * BrokerError.
   */
  async onChannel(
    doing: string,
    act: (channel: Channel) => Promise<void>,
    signal: AbortSignal,
  ): Promise<void> {
    const channel = await this.openChannel(signal);
    try {
      await this.answered(act(channel), doing, signal);
    } finally {
      // Nobody waits for the goodbye of a channel that is stuck.
      void this.release(channel);
    }
  }

  /**
   * Waits for what the broker answers to a command. Throws BrokerError, or the signal's reason when
   * it aborts.
   */
  async answered<T>(answer: Promise<T>, doing: string, signal: AbortSignal): Promise<T> {
    const timeout = AbortSignal.timeout(commandTimeoutMs);
    try {
      return await abortable(answer, AbortSignal.any([signal, this.ended, timeout]));
    } catch (error) {
      signal.throwIfAborted();
      this.ended.throwIfAborted();
      const reason = timeout.aborted ? `no answer within ${commandTimeoutMs} ms` : error;
      throw commandFailure(reason, doing);
    }
  }

  /** Gives the connection up: whoever uses it learns why. */
  lose(cause: unknown): void {
    if (!this.#finish({ reason: "lost", cause })) return;
    this.#socket.abort();
  }

  /**
   * Closes in good order: what was settled before has arrived when this resolves, if the broker is
   * there at all.
   */
  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#finish({ reason: "asked" })) this.#closing = this.#close();
    await this.#closing;
  }

  async #close(): Promise<void> {
    // amqplib sends the goodbye of a connection ahead of what waits in its channels, such as
    // settlements.
    await Promise.all(Array.from(this.#channels.keys(), (channel) => this.release(channel)));
    try {
      await abortable(this.#model.close(), this.#patience());
    } catch {
      // A broker that says no goodbye has lost us anyway.
    }
    this.#socket.abort();
  }

  async #closeChannel(channel: Channel): Promise<void> {
    const patience = this.#patience();
    try {
      const farewell = this.#farewells.get(channel);
      if (farewell !== undefined) await abortable(farewell(), patience);
      await abortable(channel.close(), patience);
    } catch {
      // Closed by the broker, or with its connection.
    }
  }

  /** Aborts when a goodbye that begins now is waited for no more. */
  #patience(): AbortSignal {
    return AbortSignal.any([this.#gone.signal, AbortSignal.timeout(closeTimeoutMs)]);
  }

  async #opened<C extends Channel>(open: () => Promise<C>, signal: AbortSignal): Promise<C> {
    this.ended.throwIfAborted();
    const opening = open().then((channel) => {
      this.#channels.set(channel, undefined);
      // The broker has closed it, which must not be answered by closing it; the commands on it tell
      // why.
      channel.on("error", () => this.#channels.delete(channel));
      // RabbitMQ 4.3 ends a consumer once for each call that was not settled in time. From the
      // second time on amqplib does not know it any more, and would give the connection up over
      // that.
      channel.on("handler-error", (error: unknown, event: string) => {
        if (event !== "cancel") this.lose(lost(error));
      });
      return channel;
    });
    try {
      return await this.answered(opening, "open a channel", signal);
    } catch (error) {
      // What opens after all is nobody's.
      opening.then((channel) => this.release(channel)).catch(() => {});
      throw error;
    }
  }

  #setBlocked(isBlocked: boolean, reason?: string): void {
    this.#isBlocked = isBlocked;
    if (isBlocked) logEvent(this.#log, "broker.blocked", { reason });
    else logEvent(this.#log, "broker.unblocked");
  }

  #finish(end: SessionEnd): boolean {
    if (this.ended.aborted) return false;
    const ended = new BrokerError("The broker session has ended", {
      cause: end.cause,
      transient: true,
    });
    this.#ended.abort(ended);
    this.#end.resolve(end);
    return true;
  }
}

function lost(cause: unknown): BrokerError {
  const reason = cause === undefined ? "" : `: ${textOf(cause)}`;
  return new BrokerError(`The connection to the broker was lost${reason}`, {
    cause,
    transient: true,
  });
}
