/**
 * One session of the client library, and the requests on it.
 */
import solace from "solclientjs";
import { Condition } from "../../support/condition.ts";
import { abortable } from "../../support/timeout.ts";
import { logEvent } from "../../telemetry/log-event.ts";
import { BrokerError, type SessionEnd } from "../broker.ts";
import { ConnectionEnd, answered, connectionLost } from "../connection-end.ts";
import type { BrokerLog } from "../log.ts";
import { parseSolaceHosts } from "./address.ts";
import { Answers } from "./answers.ts";
import { nameOf } from "./library/credentials.ts";
import { type Login, connectFailure, isFull, requestFailure } from "./failures.ts";
import { correlationKeyOf, textOf } from "./library/library.ts";
import {
  type ConnectionOptions,
  connectTimeoutMs,
  createLibrarySession,
  missingCapability,
  requestTimeoutMs,
} from "./login.ts";

/** Milliseconds for the close handshake, so that the last settlements arrive. */
const closeTimeoutMs = 5_000;

const events = solace.SessionEventCode;

/** An open session of the library. Its owner disposes it; one that is lost disposes itself. */
export class SolaceConnection implements AsyncDisposable {
  readonly #end = new ConnectionEnd();
  readonly closed: Promise<SessionEnd> = this.#end.closed;
  /** Aborts when the session ended, with a BrokerError as its reason. */
  readonly ended: AbortSignal = this.#end.signal;
  /** To the session's requests and to what is published on it. */
  readonly answers = new Answers();
  readonly session: solace.Session;
  readonly #log: BrokerLog;
  #onMessage: ((message: solace.Message) => void) | undefined;
  readonly #closingFlows = new Set<Promise<void>>();
  #closing: Promise<void> | undefined;
  /** Changes when the library, having been full, may take something again. */
  readonly #writable = new Condition();

  private constructor(session: solace.Session, log: BrokerLog) {
    this.session = session;
    this.#log = log;
    this.ended.addEventListener("abort", () => this.#writable.notify(), { once: true });
    this.#listen();
  }

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
      const missing = missingCapability((capability) => session.isCapable(capability));
      if (missing === undefined) return connection;
      throw new BrokerError(`The broker at ${login.where} ${missing}`, { transient: false });
    } catch (error) {
      connection.lose(error);
      throw error;
    }
  }

  /** Sets the receiver of the messages of the session's own subscriptions. */
  onMessage(receive: (message: solace.Message) => void): void {
    this.#onMessage = receive;
  }

  /** Sends a request with the key of its answer. */
  async request(doing: string, send: (key: string) => void, signal: AbortSignal): Promise<void> {
    const { key, answer } = this.answers.expect();
    try {
      void this.sendWithRoom(key, () => send(key));
      await this.answered(answer, doing, signal);
    } finally {
      this.answers.forget(key);
    }
  }

  /** Sends as soon as there is room, unless the answer is forgotten. Never rejects. */
  async sendWithRoom(key: string, send: () => void): Promise<void> {
    while (!this.ended.aborted && this.answers.isExpected(key)) {
      try {
        return send();
      } catch (error) {
        if (!isFull(error)) return this.answers.fail(key, error);
        await this.#writable.changed;
      }
    }
  }

  async answered<T>(
    answer: Promise<T>,
    doing: string,
    signal: AbortSignal,
    limitMs = requestTimeoutMs,
  ): Promise<T> {
    const failure = (cause: unknown) => requestFailure(cause, doing);
    return answered(answer, { signal, ended: this.ended, limitMs, failure });
  }

  lose(cause: unknown): void {
    if (this.#end.finish({ reason: "lost", cause })) this.session.dispose();
  }

  /** Disposal waits for the end of a flow: without, the library reports no disconnection. */
  async beforeClose(ending: Promise<void>): Promise<void> {
    this.#closingFlows.add(ending);
    await Promise.race([ending, this.closed]);
    this.#closingFlows.delete(ending);
  }

  /** Closes after the flows, so that the last settlements arrive. */
  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.race([Promise.all(this.#closingFlows), this.closed]);
    if (this.#end.finish({ reason: "asked" })) this.#closing = this.#close();
    await this.#closing;
  }

  async #login(login: Login, signal: AbortSignal): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.session.on(events.UP_NOTICE, resolve);
    this.session.on(events.CONNECT_FAILED_ERROR, reject);
    const connect = async (): Promise<void> => {
      this.session.connect();
      await promise;
    };
    // The library's own limit is for each host, and excludes the look-up of its name.
    const limitMs = connectTimeoutMs * login.where.split(",").length;
    const failure = (cause: unknown) => connectFailure(cause, login);
    await answered(connect(), { signal, ended: this.ended, limitMs, failure });
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
    session.on(events.CAN_ACCEPT_DATA, () => this.#writable.notify());
    session.on(events.MESSAGE, (message: solace.Message) => this.#onMessage?.(message));
    const lose = (event: unknown): void => this.lose(connectionLost(event, textOf(event)));
    session.on(events.DOWN_ERROR, lose);
    session.on(events.DISCONNECTED, lose);
    session.on(events.RECONNECTING_NOTICE, lose);
    session.on(events.GUARANTEED_MESSAGE_PUBLISHER_DOWN, lose);
    // One of these listeners threw, and left its work undone.
    session.on("error", lose);
    session.on(events.VIRTUALROUTER_NAME_CHANGED, (event: solace.SessionEvent) =>
      logEvent(this.#log, "broker.failed_over", { router: textOf(event) }),
    );
    session.on(events.REPUBLISHING_UNACKED_MESSAGES, (event: solace.SessionEvent) =>
      logEvent(this.#log, "broker.messages_resent", { reason: textOf(event) }),
    );
  }

  async #close(): Promise<void> {
    const { promise: disconnected, resolve } = Promise.withResolvers<void>();
    try {
      // Comes as soon as the socket has the last frame.
      this.session.on(events.DISCONNECTED, resolve);
      this.session.disconnect();
      await abortable(disconnected, AbortSignal.timeout(closeTimeoutMs));
    } catch {
      // A session that cannot disconnect has lost its connection.
    }
    this.session.dispose();
  }
}
