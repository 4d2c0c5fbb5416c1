/**
 * A client of a DevBroker beneath the broker contract: subscribes to patterns, publishes anything,
 * sees what comes as it is.
 */
import { BrokerError } from "../../../worker/broker/broker.ts";
import { DevConnection } from "../../../worker/broker/dev/connection.ts";
import {
  type Answer,
  type DevMessage,
  encodeCommand,
  encodePublish,
} from "../../../worker/broker/dev/wire.ts";
import { newId } from "../../../worker/support/ids.ts";

/** Milliseconds a `RECEIVE` waits for a message (as the original client). */
const receiveTimeoutMs = 1_000;

/**
 * Milliseconds beyond its own time that the answer to a `RECEIVE` may take (as the original
 * client).
 */
const receiveGraceMs = 5_000;

/** Where a DevBroker listens. */
export interface BrokerAddress {
  readonly host: string;
  readonly port: number;
}

/** How to connect. */
export interface DevClientOptions extends BrokerAddress {
  /** Beginning of the client ids, for those who read the broker's log. */
  readonly name: string;
  readonly patterns: readonly string[];
  /** Told why a message could not be read; it is skipped. */
  readonly onUnreadable?: (reason: string) => void;
}

/**
 * Two connections, because one that waits in `RECEIVE` answers nothing else. It does not reconnect.
 * Its owner disposes it.
 */
export class DevClient implements AsyncDisposable {
  /** The id that the broker knows the subscriptions under. */
  readonly clientId: string;
  readonly #receiving: DevConnection;
  readonly #publishing: DevConnection;
  readonly #onUnreadable: (reason: string) => void;

  private constructor(
    clientId: string,
    receiving: DevConnection,
    publishing: DevConnection,
    options: DevClientOptions,
  ) {
    this.clientId = clientId;
    this.#receiving = receiving;
    this.#publishing = publishing;
    this.#onUnreadable = options.onUnreadable ?? (() => undefined);
  }

  /**
   * Connects and subscribes. Throws BrokerError, or the signal's reason; leaves nothing open then.
   */
  static async connect(options: DevClientOptions, signal: AbortSignal): Promise<DevClient> {
    await using stack = new AsyncDisposableStack();
    const open = async (patterns: readonly string[]) => {
      const connection = stack.use(await DevConnection.open(options, signal));
      const clientId = `${options.name}-${newId()}`;
      const hello = encodeCommand({ cmd: "CONNECT", client_id: clientId, subscriptions: patterns });
      expectOk(await connection.command(hello, signal), "CONNECT");
      return { clientId, connection };
    };
    const receiving = await open(options.patterns);
    const publishing = await open([]);
    const client = new DevClient(
      receiving.clientId,
      receiving.connection,
      publishing.connection,
      options,
    );
    stack.move();
    return client;
  }

  /** Publishes UTF-8 JSON with user properties. Throws BrokerError, or the signal's reason. */
  async publish(
    topic: string,
    payload: Uint8Array,
    properties: Readonly<Record<string, string | number | boolean>>,
    signal: AbortSignal,
  ): Promise<void> {
    const line = encodePublish(topic, payload, properties);
    expectOk(await this.#publishing.command(line, signal), "PUBLISH");
  }

  /**
   * Every message of the patterns, pulled. One consumer at a time. Ends never: throws the
   * BrokerError that ended the connection, also after disposal, or the signal's reason.
   */
  async *messages(signal: AbortSignal): AsyncGenerator<DevMessage, never> {
    const line = encodeCommand({ cmd: "RECEIVE", timeout_ms: receiveTimeoutMs });
    for (;;) {
      const answer = await this.#receiving.command(line, signal, receiveTimeoutMs + receiveGraceMs);
      switch (answer.status) {
        case "OK":
          if (answer.message) yield answer.message;
          break;
        case "TIMEOUT":
          break;
        case "UNREADABLE":
          this.#onUnreadable(answer.reason);
          break;
        case "ERROR":
          throw refused("RECEIVE", answer);
      }
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#receiving[Symbol.asyncDispose]();
    await this.#publishing[Symbol.asyncDispose]();
  }
}

function expectOk(answer: Answer, command: string): void {
  if (answer.status !== "OK") throw refused(command, answer);
}

function refused(command: string, answer: Exclude<Answer, { status: "OK" }>): BrokerError {
  const how = answer.status === "ERROR" ? `${answer.code}: ${answer.message}` : answer.status;
  return new BrokerError(`The broker answered ${command} with ${how}`, { transient: false });
}
