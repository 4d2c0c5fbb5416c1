/**
 * Takes the calls of the served tools, one `RECEIVE` at a time: the others wait on the server. The
 * DevBroker forgets a call when it hands it out, so there is nothing to settle.
 */
import { setImmediate as nextTurn } from "node:timers/promises";
import { LRUCache } from "lru-cache";
import { invokeTopic } from "../../protocol/topics.ts";
import type { Delivery } from "../broker.ts";
import type { BrokerLog } from "../log.ts";
import { type DevConnection, receive } from "./connection.ts";
import { type DevMessage, encodeCommand, propertiesOf } from "./wire.ts";

/** Milliseconds of a `RECEIVE`, for which other commands wait. */
const receiveTimeoutMs = 1_000;

/** Milliseconds of the last `RECEIVE`: a wait of no time finds nothing even if messages wait. */
const remainderTimeoutMs = 1;

/** Remembered ids, since a message may come through several subscriptions. */
const maxRememberedIds = 1_000;

export interface QueueConsumerOptions {
  readonly namespace: string;
  /** The tools that the connection subscribes to already. */
  readonly tools: readonly string[];
  readonly ended: AbortSignal;
  readonly onLost: (cause: unknown) => void;
  readonly log: BrokerLog;
}

export class QueueConsumer {
  readonly #connection: DevConnection;
  readonly #options: QueueConsumerOptions;
  readonly #seen = new LRUCache<string, true>({ max: maxRememberedIds });
  /** Tools whose calls the server may keep for this client. */
  readonly #served: Set<string>;
  /** Never rejects. */
  #pausing: Promise<void> | undefined;

  constructor(connection: DevConnection, options: QueueConsumerOptions) {
    this.#connection = connection;
    this.#options = options;
    this.#served = new Set(options.tools);
  }

  async serve(toolName: string, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    if (this.#pausing !== undefined) return;
    // Before the answer, so that a pause meanwhile takes it back.
    this.#served.add(toolName);
    await this.#command("SUBSCRIBE", toolName, signal);
  }

  async leave(toolName: string, signal: AbortSignal): Promise<void> {
    await this.#command("UNSUBSCRIBE", toolName, signal);
    this.#served.delete(toolName);
  }

  /** Leaves all tools: a subscribed client collects calls without an answer. Never rejects. */
  pause(): Promise<void> {
    this.#pausing ??= this.#leaveAll();
    return this.#pausing;
  }

  async *deliveries(): AsyncGenerator<Delivery, void> {
    const { log, ended, onLost } = this.#options;
    while (!ended.aborted) {
      // The server has no more if it finds nothing after the commands of a pause.
      const isRemainder = this.#pausing !== undefined;
      const waitMs = isRemainder ? remainderTimeoutMs : receiveTimeoutMs;
      const options = { waitMs, log, signal: ended };
      const message = await receive(this.#connection, options).catch(onLost);
      if (!message && isRemainder) return;
      if (!message || !this.#isNew(message)) continue;
      yield toDelivery(message);
      // The call begins first: the broker and this worker may share a processor.
      await nextTurn();
    }
  }

  async #leaveAll(): Promise<void> {
    const { ended, onLost } = this.#options;
    await Promise.all(Array.from(this.#served, (tool) => this.leave(tool, ended))).catch(onLost);
  }

  async #command(
    cmd: "SUBSCRIBE" | "UNSUBSCRIBE",
    toolName: string,
    signal: AbortSignal,
  ): Promise<void> {
    const topic = invokeTopic(this.#options.namespace, toolName);
    const line = encodeCommand({ cmd, topic_pattern: topic });
    await this.#connection.execute(cmd, line, signal);
  }

  #isNew({ messageId }: DevMessage): boolean {
    if (messageId === undefined) return true;
    const isNew = !this.#seen.has(messageId);
    this.#seen.set(messageId, true);
    return isNew;
  }
}

function toDelivery(message: DevMessage): Delivery {
  return {
    topic: message.topic,
    payload: message.payload,
    redelivered: false,
    deliveryCount: 1,
    maxDeliveries: undefined,
    properties: propertiesOf(message),
    settle: () => Promise.resolve(),
  };
}
