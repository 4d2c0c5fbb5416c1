/**
 * One session of the client library, and the requests on it. The library could reconnect by itself;
 * it is not asked to, because `reconnecting` does so for every broker alike: a session that is down
 * stays down.
 */
import solace from "solclientjs";
import { abortable } from "../../support/within.ts";
import { logEvent } from "../../telemetry/log-event.ts";
import { BrokerError, type SessionEnd } from "../broker.ts";
import type { BrokerLog } from "../log.ts";
import { parseSolaceHosts } from "./address.ts";
import { Answers } from "./answers.ts";
import { missingCapability } from "./capabilities.ts";
import { nameOf } from "./credentials.ts";
import { type Login, connectFailure, isFull, requestFailure } from "./failures.ts";
import {
  type ConnectionOptions,
  connectTimeoutMs,
  createLibrarySession,
  requestTimeoutMs,
} from "./login.ts";
import { correlationKeyOf, textOf } from "./library.ts";

/** Milliseconds for the broker to say goodbye, so that what was settled last has surely arrived. */
const closeTimeoutMs = 5_000;

const events = solace.SessionEventCode;

/** An open session of the library. Its owner disposes it; one that is lost disposes itself. */
export class SolaceConnection implements AsyncDisposable {
  /** Fulfils when the session ended; never rejects. */
  readonly closed: Promise<SessionEnd>;
  /** Those of the session's requests and of what is published on it. */
  readonly answers = new Answers();
  readonly session: solace.Session;
  readonly #log: BrokerLog;
  readonly #end = Promise.withResolvers<SessionEnd>();
  readonly #ended = new AbortController();
  #hear: ((message: solace.Message) => void) | undefined;
  readonly #closingFlows = new Set<Promise<void>>();
  #closing: Promise<void> | undefined;
  /** Resolves when there may be room to send something. */
  #writable = Promise.withResolvers<void>();

  private constructor(session: solace.Session, log: BrokerLog) {
    this.session = session;
    this.#log = log;
    this.closed = this.#end.promise;
    this.#listen();
  }

  /** Connects and logs in. Throws BrokerError, or the signal's reason; leaves nothing open then. */
  static async open(options: ConnectionOptions, signal: AbortSignal): Promise<SolaceConnection> {
    signal.throwIfAborted();
    const urls = parseSolaceHosts(options.host);
    if (urls === undefined) {
      throw new BrokerError("The host of the broker is none of Solace", { transient: false });
    }
    const login = { where: urls.join(", "), vpn: options.vpn, who: nameOf(options) };
    const session = await createLibrarySession(options, urls);
    const connection = new SolaceConnection(session, options.log);
    try {
      await connection.#login(login, signal);
      connection.#checkCapabilities(login);
      return connection;
    } catch (error) {
      connection.lose(error);
      throw error;
    }
  }

  /** Aborts when the session ended, with a BrokerError as its reason. */
  get ended(): AbortSignal {
    return this.#ended.signal;
  }

  /** Who gets the messages of the session's own subscriptions. */
  onMessage(hear: (message: solace.Message) => void): void {
    this.#hear = hear;
  }

  /**
   * Asks the broker for something, as soon as there is room to send it, within `requestTimeoutMs`:
   * `send` is given the key that comes back with the answer. Throws BrokerError, or the signal's
   * reason when it aborts.
   */
  async request(doing: string, send: (key: string) => void, signal: AbortSignal): Promise<void> {
    const { key, answer } = this.answers.expect();
    try {
      await this.answered(this.#sent(key, send, answer), doing, signal);
    } finally {
      this.answers.forget(key);
    }
  }

  /** Waits for an answer, within `limitMs`. Throws BrokerError, or the signal's reason. */
  async answered<T>(
    answer: Promise<T>,
    doing: string,
    signal: AbortSignal,
    limitMs = requestTimeoutMs,
  ): Promise<T> {
    const timeout = AbortSignal.timeout(limitMs);
    try {
      return await abortable(answer, AbortSignal.any([signal, this.ended, timeout]));
    } catch (error) {
      signal.throwIfAborted();
      this.ended.throwIfAborted();
      const reason = timeout.aborted ? new Error(`no answer within ${limitMs} ms`) : error;
      throw requestFailure(reason, doing);
    }
  }

  /** Resolves when the library, having been full, may take something again. */
  get writable(): Promise<void> {
    return this.#writable.promise;
  }

  /** Gives the session up: whoever uses it learns why. */
  lose(cause: unknown): void {
    if (!this.#finish({ reason: "lost", cause })) return;
    this.session.dispose();
  }

  /** Disposal waits for the end of a flow: without, the library reports no disconnection. */
  async beforeClose(ending: Promise<void>): Promise<void> {
    this.#closingFlows.add(ending);
    await Promise.race([ending, this.closed]);
    this.#closingFlows.delete(ending);
  }

  /** Closes in good order, after the flows, so that the last settlements arrive. */
  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.race([Promise.all(this.#closingFlows), this.closed]);
    if (this.#finish({ reason: "asked" })) this.#closing = this.#close();
    await this.#closing;
  }

  async #login(login: Login, signal: AbortSignal): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.session.on(events.UP_NOTICE, resolve);
    this.session.on(events.CONNECT_FAILED_ERROR, reject);
    // The library's own limit does not include the look-up of names, and is for each host.
    const limitMs = connectTimeoutMs * login.where.split(",").length;
    const timeout = AbortSignal.timeout(limitMs);
    try {
      this.session.connect();
      await abortable(promise, AbortSignal.any([signal, this.ended, timeout]));
    } catch (error) {
      signal.throwIfAborted();
      this.ended.throwIfAborted();
      const reason = timeout.aborted ? new Error(`no answer within ${limitMs} ms`) : error;
      throw connectFailure(reason, login);
    }
  }

  #checkCapabilities({ where }: Login): void {
    const missing = missingCapability((capability) => this.session.isCapable(capability));
    if (missing === undefined) return;
    throw new BrokerError(`The broker at ${where} ${missing}`, { transient: false });
  }

  async #sent(key: string, send: (key: string) => void, answer: Promise<void>): Promise<void> {
    while (!this.ended.aborted && this.answers.isExpected(key)) {
      try {
        send(key);
        return await answer;
      } catch (error) {
        if (!isFull(error)) throw error;
        await this.writable;
      }
    }
  }

  #listen(): void {
    const { session, answers } = this;
    const succeed = (event: unknown): void => answers.succeed(correlationKeyOf(event));
    const fail = (event: unknown): void => answers.fail(correlationKeyOf(event), event);
    session.on(events.SUBSCRIPTION_OK, succeed);
    session.on(events.SUBSCRIPTION_ERROR, fail);
    session.on(events.PROVISION_OK, succeed);
    session.on(events.PROVISION_ERROR, fail);
    session.on(events.ACKNOWLEDGED_MESSAGE, succeed);
    session.on(events.REJECTED_MESSAGE_ERROR, fail);
    session.on(events.CAN_ACCEPT_DATA, () => this.#notifyWritable());
    session.on(events.MESSAGE, (message: solace.Message) => this.#hear?.(message));
    for (const down of [
      events.DOWN_ERROR,
      events.DISCONNECTED,
      events.RECONNECTING_NOTICE,
      events.GUARANTEED_MESSAGE_PUBLISHER_DOWN,
    ]) {
      session.on(down, (event: unknown) => this.lose(lost(event)));
    }
    session.on(events.VIRTUALROUTER_NAME_CHANGED, (event: solace.SessionEvent) =>
      logEvent(this.#log, "broker.failed_over", { router: textOf(event) }),
    );
    session.on(events.REPUBLISHING_UNACKED_MESSAGES, (event: solace.SessionEvent) =>
      logEvent(this.#log, "broker.messages_resent", { reason: textOf(event) }),
    );
    // One of these listeners threw: what it should have done is not done.
    session.on("error", (error: unknown) => this.lose(lost(error)));
  }

  async #close(): Promise<void> {
    const { promise: said, resolve } = Promise.withResolvers<void>();
    try {
      // Comes as soon as the goodbye is handed to the socket.
      this.session.on(events.DISCONNECTED, resolve);
      this.session.disconnect();
      await abortable(said, AbortSignal.timeout(closeTimeoutMs));
    } catch {
      // A session that cannot say goodbye has lost its connection.
    }
    this.session.dispose();
  }

  #notifyWritable(): void {
    this.#writable.resolve();
    this.#writable = Promise.withResolvers();
  }

  #finish(end: SessionEnd): boolean {
    if (this.ended.aborted) return false;
    const ended = new BrokerError("The broker session has ended", {
      cause: end.cause,
      transient: true,
    });
    this.#ended.abort(ended);
    this.#notifyWritable();
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
