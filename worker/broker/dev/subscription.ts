/**
 * A subscription beside the served tools: a client of its own, which the server hands a copy of
 * every message.
 */
import type { BrokerSubscription, HeardMessage } from "../broker.ts";
import type { BrokerLog } from "../log.ts";
import { propertiesOf, receive } from "./client.ts";
import type { DevConnection } from "./connection.ts";
import { defaultReceiveMs } from "./wire.ts";

/** Owns its connection. */
export class DevSubscription implements BrokerSubscription {
  /** What nobody pulls waits on the server, which does not tell what it drops. */
  readonly dropped = 0;
  readonly #connection: DevConnection;
  readonly #log: BrokerLog;
  readonly #onEnd: (cause?: unknown) => void;
  readonly #ended = new AbortController();

  /** `onEnd` is told once, with the cause unless the subscription was disposed of. */
  constructor(connection: DevConnection, log: BrokerLog, onEnd: (cause?: unknown) => void) {
    this.#connection = connection;
    this.#log = log;
    this.#onEnd = onEnd;
    void connection.closed.then((cause) => this.#finish(cause));
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<HeardMessage, void> {
    while (!this.#ended.signal.aborted) {
      const message = await this.#receive();
      if (message) yield message;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#finish();
    await this.#connection[Symbol.asyncDispose]();
  }

  async #receive(): Promise<HeardMessage | undefined> {
    const { signal } = this.#ended;
    try {
      const message = await receive(this.#connection, defaultReceiveMs, this.#log, signal);
      if (message === undefined) return undefined;
      const { topic, payload } = message;
      return { topic, payload, properties: propertiesOf(message) };
    } catch (error) {
      this.#finish(error);
      return undefined;
    }
  }

  #finish(cause?: unknown): void {
    if (this.#ended.signal.aborted) return;
    this.#ended.abort();
    this.#onEnd(cause);
    void this.#connection[Symbol.asyncDispose]();
  }
}
