/**
 * Routes answers and statuses to the pending calls of an agent.
 */
import { BrokerError, type HeardMessage } from "../../worker/broker/broker.ts";
import type { StatusListener } from "../../worker/protocol/messages/status-details.ts";
import { responseTopic, statusTopic } from "../../worker/protocol/topics.ts";
import { decodeStatus } from "../messages.ts";

/** Largest number of pending calls; further ones are refused. */
const maxPendingCalls = 10_000;

/** A pending call. Disposing forgets it. */
export interface PendingCall extends Disposable {
  /** The first answer, or the error. Never rejects. */
  readonly answered: Promise<Uint8Array | Error>;
}

interface Entry {
  readonly onStatus: StatusListener | undefined;
  settle(answer: Uint8Array | Error): void;
}

/** The calls of one agent. */
export class PendingCalls {
  readonly #namespace: string;
  readonly #agent: string;
  readonly #entries = new Map<string, Entry>();
  #failure: BrokerError | undefined;

  constructor(namespace: string, agent: string) {
    this.#namespace = namespace;
    this.#agent = agent;
  }

  /**
   * Registers a call. `onStatus` receives its statuses; its error becomes the answer. Throws
   * BrokerError for too many calls, and the error of `fail`.
   */
  open(correlationId: string, onStatus?: StatusListener): PendingCall {
    if (this.#failure) throw this.#failure;
    if (this.#entries.size >= maxPendingCalls) {
      throw new BrokerError(`${maxPendingCalls} calls have no answer yet`, { transient: true });
    }
    const { promise, resolve } = Promise.withResolvers<Uint8Array | Error>();
    this.#entries.set(correlationId, { onStatus, settle: resolve });
    return {
      answered: promise,
      [Symbol.dispose]: () => void this.#entries.delete(correlationId),
    };
  }

  /** Routes a message by the last level of its topic, not by its id; drops late ones. */
  deliver({ topic, payload }: HeardMessage): void {
    const correlationId = topic.slice(topic.lastIndexOf("/") + 1);
    const entry = this.#entries.get(correlationId);
    if (!entry) return;
    switch (topic) {
      case responseTopic(this.#namespace, this.#agent, correlationId):
        entry.settle(payload);
        break;
      case statusTopic(this.#namespace, this.#agent, correlationId):
        reportStatus(entry, payload);
        break;
    }
  }

  /** Answers all calls, and refuses later ones, with the error. */
  fail(error: BrokerError): void {
    this.#failure = error;
    for (const entry of this.#entries.values()) entry.settle(error);
  }
}

/** Reports a status; ignores other payloads. */
function reportStatus(entry: Entry, payload: Uint8Array): void {
  const status = decodeStatus(payload);
  if (status === undefined) return;
  try {
    entry.onStatus?.(status.text, status.details);
  } catch (error) {
    entry.settle(error instanceof Error ? error : new Error(String(error)));
  }
}
