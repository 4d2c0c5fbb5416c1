/**
 * Messages that wait for the broker's confirmation: how many there may be, and how long.
 */
import { BrokerError } from "./broker.ts";

const maxMessages = 2_000;
const maxBytes = 192 * 1024 * 1024;

/** Milliseconds without any confirmation while some are due. */
const timeoutMs = 60_000;

export interface ConfirmingConnection {
  /** Whether the broker said that it takes no messages at the moment. */
  readonly isBlocked?: boolean;
  lose(cause: BrokerError): void;
}

export class Confirmations {
  readonly #connection: ConfirmingConnection;
  #messages = 0;
  #bytes = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(connection: ConfirmingConnection) {
    this.#connection = connection;
  }

  /** Publishes a payload of this size. Throws BrokerError when too much is unconfirmed. */
  async due<T>(sizeBytes: number, publish: () => Promise<T>): Promise<T> {
    this.#checkRoom(sizeBytes);
    if (this.#messages++ === 0) this.#restart();
    this.#bytes += sizeBytes;
    try {
      return await publish();
    } finally {
      this.#messages--;
      this.#bytes -= sizeBytes;
      this.#restart();
    }
  }

  #checkRoom(sizeBytes: number): void {
    const limit =
      this.#messages >= maxMessages
        ? `${maxMessages} messages`
        : this.#bytes + sizeBytes > maxBytes
          ? `${this.#bytes} of at most ${maxBytes} bytes`
          : undefined;
    if (limit === undefined) return;
    throw new BrokerError(`Cannot publish another message: ${limit} have no confirmation yet`, {
      transient: true,
    });
  }

  #restart(): void {
    clearTimeout(this.#timer);
    if (this.#messages > 0) this.#timer = setTimeout(() => this.#expire(), timeoutMs);
  }

  #expire(): void {
    if (this.#connection.isBlocked === true) return this.#restart();
    const message = `The broker confirmed no message within ${timeoutMs} ms`;
    this.#connection.lose(new BrokerError(message, { transient: true }));
  }
}
