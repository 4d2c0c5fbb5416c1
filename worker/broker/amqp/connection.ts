/**
 * One connection to RabbitMQ, and the channels on it.
 */
import type { Channel, ChannelModel, ConfirmChannel } from "amqplib";
import { abortable } from "../../support/timeout.ts";
import { logEvent } from "../../telemetry/log-event.ts";
import type { SessionEnd } from "../broker.ts";
import { ConnectionEnd, answered, connectionLost } from "../connection-end.ts";
import type { BrokerLog } from "../log.ts";
import { commandFailure } from "./failures.ts";
import { type Login, type LoginOptions, logIn } from "./login.ts";

/** Milliseconds for an answer; queues of a cluster that elects a leader take seconds. */
const commandTimeoutMs = 30_000;

/** Milliseconds for the close handshake, so that the last settlements arrive. */
const closeTimeoutMs = 5_000;

export interface ConnectionOptions extends LoginOptions {
  readonly log: BrokerLog;
}

interface OpenChannel {
  beforeRelease?: () => Promise<unknown>;
  closing?: Promise<void>;
}

/** An open connection. Its owner disposes it; a connection that is lost disposes itself. */
export class AmqpConnection implements AsyncDisposable {
  readonly #end = new ConnectionEnd();
  readonly closed: Promise<SessionEnd> = this.#end.closed;
  /** Aborts when the connection ended, with a BrokerError as its reason. */
  readonly ended: AbortSignal = this.#end.signal;
  readonly #model: ChannelModel;
  readonly #socket: AbortController;
  readonly #log: BrokerLog;
  /** Aborts when the peer is gone: amqplib goes on waiting for the close handshake. */
  readonly #gone = new AbortController();
  readonly #channels = new Map<Channel, OpenChannel>();
  #isBlocked = false;
  #closing: Promise<void> | undefined;

  private constructor({ model, socket }: Login, log: BrokerLog) {
    this.#model = model;
    this.#socket = socket;
    this.#log = log;
    model.on("error", (error: unknown) => this.lose(connectionLost(error)));
    // Comes alone when an operator closes the connection, or the whole broker.
    model.on("close", (error?: unknown) => {
      this.#gone.abort();
      this.lose(connectionLost(error));
    });
    model.on("blocked", (reason: string) => {
      this.#isBlocked = true;
      logEvent(this.#log, "broker.blocked", { reason });
    });
    model.on("unblocked", () => {
      this.#isBlocked = false;
      logEvent(this.#log, "broker.unblocked");
    });
  }

  static async open(options: ConnectionOptions, signal: AbortSignal): Promise<AmqpConnection> {
    return new AmqpConnection(await logIn(options, signal), options.log);
  }

  /** Whether the broker takes no messages at the moment, for want of memory or disk. */
  get isBlocked(): boolean {
    return this.#isBlocked;
  }

  /** The broker closes the channel when it refuses a command on it. Throws BrokerError. */
  async openChannel(signal: AbortSignal): Promise<Channel> {
    return this.#opened(() => this.#model.createChannel(), signal);
  }

  async openConfirmChannel(signal: AbortSignal): Promise<ConfirmChannel> {
    return this.#opened(() => this.#model.createConfirmChannel(), signal);
  }

  /** `act` runs before the channel is released, but not when the broker closes it. */
  beforeRelease(channel: Channel, act: () => Promise<unknown>): void {
    const open = this.#channels.get(channel);
    if (open !== undefined) open.beforeRelease = act;
  }

  /** Closes a channel. Idempotent; never rejects. */
  async release(channel: Channel): Promise<void> {
    const open = this.#channels.get(channel);
    if (open === undefined) return;
    open.closing ??= this.#closeChannel(channel, open);
    await open.closing;
    this.#channels.delete(channel);
  }

  /** Acts on a new channel, which alone is lost at a refusal. Throws BrokerError. */
  async onChannel(
    doing: string,
    act: (channel: Channel) => Promise<unknown>,
    signal: AbortSignal,
  ): Promise<void> {
    const channel = await this.openChannel(signal);
    try {
      await this.answered(act(channel), doing, signal);
    } finally {
      // A channel that is stuck delays its caller no longer.
      void this.release(channel);
    }
  }

  async answered<T>(answer: Promise<T>, doing: string, signal: AbortSignal): Promise<T> {
    const failure = (cause: unknown) => commandFailure(cause, doing);
    return answered(answer, { signal, ended: this.ended, limitMs: commandTimeoutMs, failure });
  }

  lose(cause: unknown): void {
    if (this.#end.finish({ reason: "lost", cause })) this.#socket.abort();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#end.finish({ reason: "asked" })) this.#closing = this.#close();
    await this.#closing;
  }

  async #close(): Promise<void> {
    // amqplib sends the connection's close ahead of what waits in its channels, such as
    // settlements.
    await Promise.all(Array.from(this.#channels.keys(), (channel) => this.release(channel)));
    try {
      await abortable(this.#model.close(), this.#patience());
    } catch {
      // A broker that answers no close has lost the connection anyway.
    }
    this.#socket.abort();
  }

  async #closeChannel(channel: Channel, { beforeRelease }: OpenChannel): Promise<void> {
    const patience = this.#patience();
    try {
      if (beforeRelease !== undefined) await abortable(beforeRelease(), patience);
      await abortable(channel.close(), patience);
    } catch {
      // Closed by the broker, or with its connection.
    }
  }

  /** Aborts when a close handshake that begins now is waited for no more. */
  #patience(): AbortSignal {
    return AbortSignal.any([this.#gone.signal, AbortSignal.timeout(closeTimeoutMs)]);
  }

  async #opened<C extends Channel>(open: () => Promise<C>, signal: AbortSignal): Promise<C> {
    this.ended.throwIfAborted();
    const opening = open().then((channel) => {
      this.#channels.set(channel, {});
      // The broker closed it, so it must not be closed again.
      channel.on("error", () => this.#channels.delete(channel));
      // RabbitMQ 4.3 ends a consumer once for each call that was not settled in time. From the
      // second time on amqplib does not know the consumer and would give the connection up.
      channel.on("handler-error", (error: unknown, event: string) => {
        if (event !== "cancel") this.lose(connectionLost(error));
      });
      return channel;
    });
    try {
      return await this.answered(opening, "open a channel", signal);
    } catch (error) {
      // A channel that opens too late has no owner.
      opening.then((channel) => this.release(channel)).catch(() => {});
      throw error;
    }
  }
}
