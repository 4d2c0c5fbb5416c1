/**
 * The clients of a DevBroker and the way of a message from one to the others.
 */
import { EventEmitter, on } from "node:events";
import { topicMatches } from "../../worker/protocol/topics.ts";
import { newUuid } from "../../worker/support/ids.ts";
import { encodeMessage } from "./dev-broker-frames.ts";

/** Messages that wait for one client; of more, the oldest go. */
export const maxQueuedMessages = 10_000;

/** Bytes that wait for one client; of more, the oldest messages go. */
export const maxQueuedBytes = 64 * 1024 * 1024;

/** Patterns of one client; further ones are refused. */
export const maxPatternsPerClient = 10_000;

/** The longest wait a timer can count, in milliseconds. */
const maxWaitMs = 2 ** 31 - 1;

/** What a connected client subscribes to. */
export interface ClientSubscriptions {
  readonly clientId: string | null;
  readonly patterns: readonly string[];
}

/** What an observer can hear. */
export interface DevBrokerEvents {
  /** A client connected or changed its subscriptions. */
  subscribed: [client: ClientSubscriptions];
  /**
   * A client reads too slowly: its oldest waiting messages were dropped, `total` of them by now.
   */
  dropped: [loss: { readonly clientId: string | null; readonly total: number }];
}

/** One client: what it wants to hear and what waits for it. */
export class Client {
  readonly id: string | null;
  readonly patterns: Set<string>;
  /** Encoded answers to `RECEIVE`, oldest first; the clients share them. */
  readonly #queue: Buffer[] = [];
  #queuedBytes = 0;
  #dropped = 0;
  #receiver: ((line: Buffer) => void) | undefined;

  constructor(id: string | null, patterns: readonly string[]) {
    this.id = id;
    this.patterns = new Set(patterns);
  }

  /** Messages that were dropped because the client reads too slowly. */
  get dropped(): number {
    return this.#dropped;
  }

  describe(): ClientSubscriptions {
    return { clientId: this.id, patterns: [...this.patterns] };
  }

  /** Takes a message for the client. */
  enqueue(line: Buffer): void {
    if (this.#receiver) {
      this.#receiver(line);
      return;
    }
    this.#queue.push(line);
    this.#queuedBytes += line.length;
    while (this.#queue.length > maxQueuedMessages || this.#queuedBytes > maxQueuedBytes) {
      this.#dequeue();
      this.#dropped++;
    }
  }

  /**
   * The next message, or undefined when none came in time or the signal aborted. A wait of no time
   * finds nothing, even when messages wait: so does the original's. One caller at a time.
   */
  receive(timeoutMs: number, signal: AbortSignal): Promise<Buffer | undefined> {
    const waiting = timeoutMs > 0 ? this.#dequeue() : undefined;
    if (waiting || timeoutMs <= 0 || signal.aborted) return Promise.resolve(waiting);
    return new Promise((resolve) => {
      const finish = (line?: Buffer): void => {
        this.#receiver = undefined;
        clearTimeout(timer);
        signal.removeEventListener("abort", giveUp);
        resolve(line);
      };
      const giveUp = (): void => finish();
      const timer = setTimeout(giveUp, Math.min(timeoutMs, maxWaitMs));
      signal.addEventListener("abort", giveUp, { once: true });
      this.#receiver = finish;
    });
  }

  #dequeue(): Buffer | undefined {
    const line = this.#queue.shift();
    this.#queuedBytes -= line?.length ?? 0;
    return line;
  }
}

/**
 * A message on its way to those who want it; payload and properties are the JSON text of the
 * sender.
 */
export interface OutgoingMessage {
  readonly topic: string;
  readonly payload: Uint8Array;
  readonly userProperties: Uint8Array;
}

/** The clients that are connected. */
export class Hub {
  readonly events = new EventEmitter<DevBrokerEvents>();
  readonly #clients = new Map<string | null, Client>();

  get subscriptions(): readonly ClientSubscriptions[] {
    return [...this.#clients.values()].map((client) => client.describe());
  }

  /** Resolves as soon as some client subscribes to `topic`; rejects with the signal's reason. */
  async whenSubscribed(topic: string, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    const isHeardBy = (client: ClientSubscriptions): boolean =>
      client.patterns.some((pattern) => topicMatches(pattern, topic));
    if (this.subscriptions.some(isHeardBy)) return;
    try {
      for await (const [client] of on(this.events, "subscribed", { signal })) {
        if (isHeardBy(client as ClientSubscriptions)) return;
      }
    } catch (error) {
      signal.throwIfAborted();
      throw error;
    }
  }

  /** Registers a client; one that had the same id before hears nothing from now on. */
  add(client: Client): void {
    this.#clients.set(client.id, client);
    this.announce(client);
  }

  /** Forgets a client, unless another one has taken its id. */
  remove(client: Client): void {
    if (this.#clients.get(client.id) === client) this.#clients.delete(client.id);
  }

  /** Tells observers what a client subscribes to. */
  announce(client: Client): void {
    this.events.emit("subscribed", client.describe());
  }

  /**
   * Hands a message to every client but its sender, once for each pattern that matches. Returns its
   * id.
   */
  publish(sender: Client, message: OutgoingMessage): string {
    const messageId = newUuid();
    const line = encodeMessage(messageId, message);
    for (const client of this.#clients.values()) {
      if (client.id === sender.id) continue;
      const droppedBefore = client.dropped;
      for (const pattern of client.patterns) {
        if (topicMatches(pattern, message.topic)) client.enqueue(line);
      }
      if (client.dropped > droppedBefore) {
        this.events.emit("dropped", { clientId: client.id, total: client.dropped });
      }
    }
    return messageId;
  }
}
