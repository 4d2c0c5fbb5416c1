/**
 * What a broker knows, whether it listens or not: its queues and publishers, and which clients hear
 * what.
 */
import { EventEmitter } from "node:events";
import type { SmfBrokerEvents } from "./events.ts";
import { type Faults, refusals } from "./faults.ts";
import { type Message, encodeDirect, queueNamed } from "./wire/message.ts";
import type { Response } from "./wire/params.ts";
import { PublisherFlows } from "./publisher-flow.ts";
import { type QueueProperties, defaultProperties } from "./wire/queue-properties.ts";
import { Queue, type QueueSurroundings } from "./queue.ts";
import { type Subscription, topicMatches } from "./topics.ts";

/** Queues of one broker. */
export const maxQueues = 10_000;

/** Bytes of a queue's name. */
export const maxQueueNameBytes = 200;

/** Guaranteed messages of the replay log; of more, the oldest go. */
export const maxLoggedMessages = 1_000;

/** Where messages end that nobody can be given, if they are eligible. */
export const deadMessageQueue = "#DEAD_MSG_QUEUE";

/** A client that is logged in. */
export interface Client {
  readonly name: string;
  readonly username: string;
  /** What it subscribes to itself, by the text of the subscription. */
  readonly subscriptions: ReadonlyMap<string, Subscription>;
  /** When it was last given a message of a shared subscription, as the how-many-th; 0 for never. */
  lastShare: number;
  /** Sends a direct message, or drops it when the client reads too slowly. */
  hear(topic: string, frame: Buffer): void;
}

/** How messages are treated. */
export interface RouterOptions {
  readonly now: () => number;
  readonly rejectsUnmatched: boolean;
  readonly keepsReplayLog?: boolean;
}

/** The heart of a broker. */
export class Router implements QueueSurroundings {
  readonly events = new EventEmitter<SmfBrokerEvents>();
  readonly faults: Faults = {};
  readonly clients = new Map<string, Client>();
  readonly queues = new Map<string, Queue>();
  readonly publishers = new PublisherFlows();
  readonly now: () => number;
  /**
   * Guaranteed messages in the order in which they came; undefined when none are kept for replays.
   */
  readonly #replayLog: Message[] | undefined;
  /** Whether a publisher hears that nobody subscribes to the topic of its guaranteed message. */
  readonly #rejectsUnmatched: boolean;
  #lastMessageId = 0;
  #lastFlowId = 0;
  #lastShare = 0;

  constructor(options: RouterOptions) {
    this.now = options.now;
    this.#replayLog = options.keepsReplayLog ? [] : undefined;
    this.#rejectsUnmatched = options.rejectsUnmatched;
    this.createQueue(deadMessageQueue, {});
  }

  newMessageId(): number {
    return ++this.#lastMessageId;
  }

  newFlowId(): number {
    return ++this.#lastFlowId;
  }

  /** Makes a queue. Returns why it does not. */
  createQueue(name: string, properties: Partial<QueueProperties>): Response | undefined {
    if (name === "" || Buffer.byteLength(name) > maxQueueNameBytes) return refusals.invalidName;
    if (this.queues.has(name)) return refusals.alreadyExists;
    if (this.queues.size >= maxQueues) return refusals.tooManyQueues;
    this.queues.set(name, new Queue(name, { ...defaultProperties, ...properties }, this));
    return undefined;
  }

  /** Removes a queue with its messages; its consumers hear that it is gone. */
  deleteQueue(name: string): void {
    const queue = this.queues.get(name);
    this.queues.delete(name);
    queue?.unbindAll(refusals.unknownQueue);
  }

  /**
   * Brings a guaranteed message to every queue that wants it, or to none; and to those who hear it
   * directly.
   */
  publish(message: Message): Response | undefined {
    const { topic } = message;
    const queueName = queueNamed(topic);
    const named = queueName === undefined ? undefined : this.queues.get(queueName);
    if (queueName !== undefined && named === undefined) return refusals.unknownQueue;
    const queues = named ? [named] : this.#queuesFor(topic);
    for (const queue of queues) {
      const refusal = queue.refusal(message);
      if (refusal) return refusal;
    }
    this.#log(message);
    for (const queue of queues) queue.spool(message);
    const listeners = named ? [] : this.#listeners(topic);
    if (listeners.length > 0) {
      const frame = encodeDirect(message);
      for (const client of listeners) client.hear(topic, frame);
    }
    const isUnmatched = queues.length + listeners.length === 0;
    return isUnmatched && this.#rejectsUnmatched ? refusals.noSubscriptionMatch : undefined;
  }

  /**
   * Brings a direct message, as it came, to everybody who wants it now. Queues keep it if they can.
   */
  forward(message: Message, frame: Buffer): void {
    for (const queue of this.#queuesFor(message.topic)) {
      if (!queue.refusal(message)) queue.spool(message);
    }
    for (const client of this.#listeners(message.topic)) client.hear(message.topic, frame);
  }

  /**
   * Hands out once more all logged messages that a queue subscribes to, as new ones, in place of
   * what it has.
   */
  replay(queue: Queue): void {
    const logged = this.#replayLog ?? [];
    queue.replay(logged.filter(({ topic }) => isWanted(queue, topic)));
  }

  bury(message: Message, from: Queue): boolean {
    const grave = this.queues.get(deadMessageQueue);
    if (!message.isDeadMessageEligible || !grave || grave === from) return false;
    if (grave.refusal(message)) return false;
    grave.spool(message);
    return true;
  }

  #log(message: Message): void {
    if (this.#replayLog === undefined) return;
    this.#replayLog.push(message);
    if (this.#replayLog.length > maxLoggedMessages) this.#replayLog.shift();
  }

  #queuesFor(topic: string): readonly Queue[] {
    return [...this.queues.values()].filter((queue) => isWanted(queue, topic));
  }

  /**
   * Clients that hear the topic: each that subscribes alone, and one of every group that shares a
   * subscription.
   */
  #listeners(topic: string): readonly Client[] {
    const alone: Client[] = [];
    const groups = new Map<string, Client[]>();
    for (const client of this.clients.values()) {
      const matching = [...client.subscriptions.values()].filter(({ pattern }) =>
        topicMatches(pattern, topic),
      );
      if (matching.some(({ group }) => group === undefined)) alone.push(client);
      for (const { group, pattern } of matching) {
        if (group === undefined) continue;
        const key = `${group}/${pattern}`;
        groups.set(key, [...(groups.get(key) ?? []), client]);
      }
    }
    return [...alone, ...[...groups.values()].map((members) => this.#pick(members))];
  }

  /** The member of a group that has waited longest. */
  #pick(members: readonly Client[]): Client {
    const chosen = members.reduce((first, next) =>
      next.lastShare < first.lastShare ? next : first,
    );
    chosen.lastShare = ++this.#lastShare;
    return chosen;
  }
}

function isWanted({ subscriptions }: Queue, topic: string): boolean {
  return [...subscriptions].some((pattern) => topicMatches(pattern, topic));
}
