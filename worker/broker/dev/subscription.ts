/**
 * A subscription: a separate client, whose messages wait on the server.
 */
import { setImmediate as nextTurn } from "node:timers/promises";
import type { BrokerSubscription, HeardMessage } from "../broker.ts";
import type { BrokerLog } from "../log.ts";
import { type DevConnection, receive } from "./connection.ts";
import { defaultReceiveMs, propertiesOf } from "./wire.ts";

export class DevSubscription implements BrokerSubscription {
  /** The server does not report what it drops. */
  readonly dropped = 0;
  readonly #connection: DevConnection;
  readonly #log: BrokerLog;
  readonly #onEnd: (cause?: unknown) => void;
  readonly #ended = new AbortController();

  /** `onEnd` is called once, with the cause unless the subscription was disposed of. */
  constructor(connection: DevConnection, log: BrokerLog, onEnd: (cause?: unknown) => void) {
    this.#connection = connection;
    this.#log = log;
    this.#onEnd = onEnd;
    void connection.closed.then((cause) => this.#finish(cause));
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<HeardMessage, void> {
    const options = { waitMs: defaultReceiveMs, log: this.#log, signal: this.#ended.signal };
    while (!this.#ended.signal.aborted) {
      const message = await receive(this.#connection, options).catch((error: unknown) =>
        this.#finish(error),
      );
      if (!message) continue;
      const { topic, payload } = message;
      yield { topic, payload, properties: propertiesOf(message) };
      // Who waits for the message goes on first.
      await nextTurn();
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#finish();
    await this.#connection[Symbol.asyncDispose]();
  }

  #finish(cause?: unknown): void {
    if (this.#ended.signal.aborted) return;
    this.#ended.abort();
    this.#onEnd(cause);
    void this.#connection[Symbol.asyncDispose]();
  }
}
