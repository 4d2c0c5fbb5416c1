/**
 * The broker adapter for the DevBroker that agents bring along for development.
 *
 * A session is two connections, because a connection that waits in `RECEIVE` answers nothing else: one receives, one
 * publishes. The receiving one connects first and names every subscription in its `CONNECT`, so that no call published
 * after an agent saw the worker can slip through. Each connection has a client id of its own that is never used again: the
 * original removes the registration of a reconnected client when it notices the death of the former one.
 */
import { LRUCache } from "lru-cache";
import { invokeTopic } from "../../protocol/topics.ts";
import { type Clock, systemClock } from "../../support/clock.ts";
import { newId } from "../../support/ids.ts";
import {
  type Broker,
  BrokerError,
  type BrokerSession,
  type Delivery,
  type OutboundMessage,
  type SessionEnd,
} from "../broker.ts";
import type { BrokerLog } from "../log.ts";
import { DevConnection } from "./connection.ts";
import { type Answer, type DevMessage, encodeCommand, encodePublish } from "./wire.ts";

/**
 * Milliseconds a `RECEIVE` waits for a message. It bounds how late `serve`, `leave` and `pause` take effect, since
 * their commands wait for a `RECEIVE` in progress.
 */
const receiveTimeoutMs = 1_000;

/**
 * Milliseconds a `RECEIVE` of a paused session waits: it asks for what waits already. The least that is heard, because a
 * wait of no time finds nothing even when messages wait.
 */
const remainderTimeoutMs = 1;

/** Milliseconds beyond its own time that the answer to a `RECEIVE` may take (as the original client). */
const receiveGraceMs = 5_000;

/** Message ids remembered, so that a message which came through several subscriptions is handed out once. */
const maxRememberedIds = 1_000;

/** Where the DevBroker is and who we are. */
export interface DevBrokerOptions {
  readonly host: string;
  readonly port: number;
  readonly namespace: string;
  /** Beginning of the client ids, for those who read the broker's log. */
  readonly workerId: string;
  /** Told about messages that cannot be read and are skipped. */
  readonly log: BrokerLog;
  readonly clock?: Clock;
}

/** Makes the adapter. Nothing is opened before `connect`. */
export function createDevBroker(options: DevBrokerOptions): Broker {
  return {
    kind: "dev",
    async connect(tools, signal) {
      await using stack = new AsyncDisposableStack();
      const patterns = tools.map((tool) => invokeTopic(options.namespace, tool));
      const receiving = stack.use(await openConnection(options, patterns, signal));
      const publishing = stack.use(await openConnection(options, [], signal));
      const session = new DevSession(receiving, publishing, options, tools);
      stack.move();
      return session;
    },
  };
}

/** Connects and introduces a client. Throws BrokerError; leaves nothing open then. */
async function openConnection(
  options: DevBrokerOptions,
  subscriptions: readonly string[],
  signal: AbortSignal,
): Promise<DevConnection> {
  await using stack = new AsyncDisposableStack();
  const connection = stack.use(await DevConnection.open(options, signal));
  const clientId = `${options.workerId}-${newId()}`;
  const hello = encodeCommand({ cmd: "CONNECT", client_id: clientId, subscriptions });
  expectOk(await connection.command(hello, signal), "CONNECT");
  stack.move();
  return connection;
}

class DevSession implements BrokerSession {
  /** The DevBroker forgets a message when it hands it out. */
  readonly redelivers = false;
  readonly closed: Promise<SessionEnd>;
  readonly deliveries: AsyncIterable<Delivery>;
  readonly #receiving: DevConnection;
  readonly #publishing: DevConnection;
  readonly #namespace: string;
  readonly #log: BrokerLog;
  readonly #clock: Clock;
  readonly #seen = new LRUCache<string, true>({ max: maxRememberedIds });
  readonly #end = Promise.withResolvers<SessionEnd>();
  readonly #ended = new AbortController();
  /** Tools whose calls the server queues for us, as far as we know. */
  readonly #served: Set<string>;
  /** Set once the session is paused; never rejects. */
  #pausing: Promise<void> | undefined;

  constructor(
    receiving: DevConnection,
    publishing: DevConnection,
    options: DevBrokerOptions,
    tools: readonly string[],
  ) {
    this.#receiving = receiving;
    this.#publishing = publishing;
    this.#namespace = options.namespace;
    this.#log = options.log;
    this.#clock = options.clock ?? systemClock;
    this.#served = new Set(tools);
    this.closed = this.#end.promise;
    this.deliveries = { [Symbol.asyncIterator]: () => this.#deliver() };
    for (const connection of [receiving, publishing]) {
      void connection.closed.then((cause) => this.#finish({ reason: "lost", cause }));
    }
  }

  async serve(toolName: string, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    if (this.#pausing !== undefined) return;
    // Before the answer, so that a pause which comes meanwhile takes it back.
    this.#served.add(toolName);
    await this.#subscription("SUBSCRIBE", toolName, signal);
  }

  async leave(toolName: string, signal: AbortSignal): Promise<void> {
    await this.#subscription("UNSUBSCRIBE", toolName, signal);
    this.#served.delete(toolName);
  }

  async publish(message: OutboundMessage, signal: AbortSignal): Promise<void> {
    const properties = { ...message.properties, timestamp: this.#clock.nowMs() };
    const line = encodePublish(message.topic, message.payload, properties);
    this.#expectOk(await this.#publishing.command(line, signal), "PUBLISH");
  }

  pause(): Promise<void> {
    this.#pausing ??= this.#leaveAll();
    return this.#pausing;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#finish({ reason: "asked" });
    await this.#receiving[Symbol.asyncDispose]();
    await this.#publishing[Symbol.asyncDispose]();
  }

  /**
   * A paused session that stayed subscribed would collect calls which nobody ever answers. One that the broker does not
   * let go ends for the same reason.
   */
  async #leaveAll(): Promise<void> {
    try {
      await Promise.all(Array.from(this.#served, (tool) => this.leave(tool, this.#ended.signal)));
    } catch (error) {
      this.#finish({ reason: "lost", cause: error });
    }
  }

  /** The server carries commands out one after the other, so this one waits for the `RECEIVE` in progress. */
  async #subscription(
    cmd: "SUBSCRIBE" | "UNSUBSCRIBE",
    toolName: string,
    signal: AbortSignal,
  ): Promise<void> {
    const line = encodeCommand({ cmd, topic_pattern: invokeTopic(this.#namespace, toolName) });
    this.#expectOk(await this.#receiving.command(line, signal), cmd);
  }

  #expectOk(answer: Answer, command: string): void {
    try {
      expectOk(answer, command);
    } catch (error) {
      // A broker that has forgotten us will not remember; only a new session helps.
      if (answer.status === "ERROR" && answer.code === "NOT_CONNECTED") {
        this.#finish({ reason: "lost", cause: error });
      }
      throw error;
    }
  }

  /** Nothing is fetched that is not asked for: what this worker has no place for waits on the server. */
  async *#deliver(): AsyncGenerator<Delivery, void> {
    while (!this.#ended.signal.aborted) {
      // Sent behind the commands of a pause, so the server has nothing for us any more when it finds nothing now.
      const isRemainder = this.#pausing !== undefined;
      const answer = await this.#receive(isRemainder ? remainderTimeoutMs : receiveTimeoutMs);
      if (isRemainder && answer?.status === "TIMEOUT") return;
      const message = this.#read(answer);
      if (message !== undefined) yield toDelivery(message);
    }
  }

  /** One `RECEIVE`; undefined when there is no answer: then the session is over, and `closed` says why. */
  async #receive(waitMs: number): Promise<Answer | undefined> {
    const line = encodeCommand({ cmd: "RECEIVE", timeout_ms: waitMs });
    try {
      return await this.#receiving.command(line, this.#ended.signal, waitMs + receiveGraceMs);
    } catch (error) {
      this.#finish({ reason: "lost", cause: error });
      return undefined;
    }
  }

  /** The message that a `RECEIVE` brought; undefined when there is none to hand out. */
  #read(answer: Answer | undefined): DevMessage | undefined {
    switch (answer?.status) {
      case "OK":
        return answer.message && this.#isNew(answer.message) ? answer.message : undefined;
      case "ERROR":
        // Whatever the broker has against a RECEIVE it will have against the next one.
        this.#finish({ reason: "lost", cause: refusal("RECEIVE", answer) });
        return undefined;
      case "UNREADABLE":
        this.#log.warn({ reason: answer.reason }, "unreadable message skipped");
        return undefined;
      default:
        return undefined;
    }
  }

  #isNew(message: DevMessage): boolean {
    if (message.messageId === undefined) return true;
    if (this.#seen.has(message.messageId)) return false;
    this.#seen.set(message.messageId, true);
    return true;
  }

  #finish(end: SessionEnd): void {
    if (this.#ended.signal.aborted) return;
    this.#ended.abort();
    this.#end.resolve(end);
    void this.#receiving[Symbol.asyncDispose]();
    void this.#publishing[Symbol.asyncDispose]();
  }
}

function toDelivery(message: DevMessage): Delivery {
  const properties = Object.entries(message.userProperties).map(
    ([name, value]) => [name, typeof value === "string" ? value : JSON.stringify(value)] as const,
  );
  return {
    topic: message.topic,
    payload: message.payload,
    redelivered: false,
    properties: Object.fromEntries(properties),
    settle: () => Promise.resolve(),
  };
}

/** Throws BrokerError unless the command was carried out. */
function expectOk(answer: Answer, command: string): void {
  if (answer.status !== "OK") throw refusal(command, answer);
}

function refusal(command: string, answer: Exclude<Answer, { status: "OK" }>): BrokerError {
  switch (answer.status) {
    case "ERROR":
      return new BrokerError(`The broker refused ${command}: ${answer.code}: ${answer.message}`, {
        transient: answer.code !== "INVALID_COMMAND",
      });
    case "UNREADABLE":
      return new BrokerError(
        `The answer to ${command} is not one of a DevBroker: ${answer.reason}`,
        {
          transient: false,
        },
      );
    case "TIMEOUT":
      return new BrokerError(`The broker answered ${command} with TIMEOUT`, { transient: true });
  }
}
