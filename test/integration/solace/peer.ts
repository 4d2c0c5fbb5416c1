/**
 * A client of the broker as agents and workers are: the real library, its events as promises and
 * lists.
 */
import solace from "solclientjs";
import { Consumption, type Outcome, type Taken } from "./consumption.ts";
import { type PeerEvent, bodyOf, descriptor, emitterOf, errorOf, settled } from "./library.ts";
import { makeMessage, topic } from "./messages.ts";

const events = solace.SessionEventCode;

/** A direct message. */
export interface Heard {
  readonly topic: string;
  readonly body: string;
  readonly message: solace.Message;
}

/** How a message is sent, where it matters. */
export interface SendOptions {
  readonly ttlMs?: number;
  readonly isDeadMessageEligible?: boolean;
}

/** A session. Its owner disposes it; that closes its consumers. Disposal is idempotent. */
export class Peer implements AsyncDisposable {
  readonly session: solace.Session;
  /** Direct messages, in order. */
  readonly heard: Heard[] = [];
  /** Names of the events of the session, in order. */
  readonly told: string[] = [];
  readonly #pending = new Map<string, PromiseWithResolvers<void>>();
  #keys = 0;
  #isDisposed = false;

  private constructor(properties: Partial<solace.SessionProperties>) {
    this.session = solace.SolclientFactory.createSession(new solace.SessionProperties(properties));
    for (const [name, code] of Object.entries(events)) {
      if (typeof code === "number") this.#listen(name, code);
    }
    this.session.on("error", () => {});
  }

  /** Logs in. Rejects with PeerError. */
  static async connect(
    url: string,
    properties: Partial<solace.SessionProperties> = {},
  ): Promise<Peer> {
    const peer = new Peer({
      url,
      vpnName: "default",
      userName: "user",
      password: "password",
      publisherProperties: new solace.MessagePublisherProperties({
        enabled: true,
        acknowledgeTimeoutInMsecs: 200,
      }),
      connectRetries: 0,
      connectTimeoutInMsecs: 10_000,
      reconnectRetries: -1,
      reconnectRetryWaitInMsecs: 50,
      reapplySubscriptions: true,
      ...properties,
    });
    try {
      await settled(peer.session, events.UP_NOTICE, [events.CONNECT_FAILED_ERROR], () =>
        peer.session.connect(),
      );
      return peer;
    } catch (error) {
      peer.session.dispose();
      throw error;
    }
  }

  /** Waits for an event of the session from now on. */
  next(code: solace.SessionEventCode): Promise<unknown> {
    return new Promise((resolve) => emitterOf(this.session).once(code, resolve));
  }

  subscribe(name: string): Promise<void> {
    return this.#confirmed((key) => this.session.subscribe(topic(name), true, key, 10_000));
  }

  unsubscribe(name: string): Promise<void> {
    return this.#confirmed((key) => this.session.unsubscribe(topic(name), true, key, 10_000));
  }

  /** Sends a guaranteed message; resolves when the broker has confirmed it. */
  publish(
    destination: solace.Destination,
    body: string | Buffer,
    options: SendOptions = {},
  ): Promise<void> {
    const message = makeMessage(destination, body);
    message.setDeliveryMode(solace.MessageDeliveryModeType.PERSISTENT);
    if (options.ttlMs !== undefined) message.setTimeToLive(options.ttlMs);
    message.setDMQEligible(options.isDeadMessageEligible ?? false);
    return this.#confirmed((key) => {
      message.setCorrelationKey(key);
      this.session.send(message);
    });
  }

  /** Sends a direct message, of which nobody hears what became of it. */
  send(name: string, body: string | Buffer): void {
    this.session.send(makeMessage(topic(name), body));
  }

  /** Makes a queue that consumers share, unless the properties say otherwise. */
  provision(
    name: string,
    properties: Partial<solace.QueueProperties> = {},
    ignoreExists = false,
  ): Promise<void> {
    const all = Object.assign(new solace.QueueProperties(), {
      accessType: solace.QueueAccessType.NONEXCLUSIVE,
      ...properties,
    });
    return this.#confirmed((key) =>
      this.session.provisionEndpoint(descriptor(name), all, ignoreExists, key),
    );
  }

  deprovision(name: string): Promise<void> {
    return this.#confirmed((key) => this.session.deprovisionEndpoint(descriptor(name), false, key));
  }

  /** Binds to a queue; see Consumption. */
  consume(
    name: string,
    settle: (taken: Taken) => Outcome | undefined = () => "accepted",
    windowSize = 255,
  ): Promise<Consumption> {
    return Consumption.open(this.session, name, settle, windowSize);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#isDisposed) return;
    this.#isDisposed = true;
    const disconnected = this.next(events.DISCONNECTED);
    this.session.disconnect();
    await disconnected;
    this.session.dispose();
  }

  #listen(name: string, code: number): void {
    emitterOf(this.session).on(code, (event: unknown) => {
      if (code === Number(events.MESSAGE)) {
        const message = event as solace.Message;
        this.heard.push({
          topic: message.getDestination()?.getName() ?? "",
          body: bodyOf(message),
          message,
        });
        return;
      }
      this.told.push(name);
      const key = (event as PeerEvent | undefined)?.correlationKey;
      const waiting = this.#pending.get(key ?? "");
      if (waiting === undefined || !/_OK$|_ERROR$|^ACKNOWLEDGED/.test(name)) return;
      this.#pending.delete(key ?? "");
      if (name.endsWith("_ERROR")) waiting.reject(errorOf(name, event as PeerEvent));
      else waiting.resolve();
    });
  }

  #confirmed(request: (key: string) => void): Promise<void> {
    const key = `key-${++this.#keys}`;
    const waiting = Promise.withResolvers<void>();
    this.#pending.set(key, waiting);
    request(key);
    return waiting.promise;
  }
}
