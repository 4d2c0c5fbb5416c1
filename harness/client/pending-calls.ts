/**
 * The calls of an agent that have no answer yet, and how what comes for them finds them.
 */
import { BrokerError, type HeardMessage } from "../../worker/broker/broker.ts";
import { responseTopic, statusTopic } from "../../worker/protocol/topics.ts";
import { decodeStatusText } from "../messages.ts";

/** Calls without an answer at once; further ones are refused. */
const maxPendingCalls = 10_000;

/** A call that is waited for until it is disposed of. */
export interface PendingCall extends Disposable {
  /** The first answer, or why there will be none. Never rejects. */
  readonly answered: Promise<Uint8Array | Error>;
}

interface Entry {
  readonly onStatus: ((text: string) => void) | undefined;
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
   * Waits for a call from now on; `onStatus` is told its statuses, and what it throws is the
   * answer. Throws BrokerError when too many calls wait, and what `fail` was told.
   */
  open(correlationId: string, onStatus?: (text: string) => void): PendingCall {
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

  /**
   * Answers find their call by the last level of their topic, not by their id; those to nobody's
   * call are late.
   */
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

  /** Nothing comes any more: answers all calls with the error, and refuses later ones with it. */
  fail(error: BrokerError): void {
    this.#failure = error;
    for (const entry of this.#entries.values()) entry.settle(error);
  }
}

/** Tells a status, if it is one. */
function reportStatus(entry: Entry, payload: Uint8Array): void {
  const text = decodeStatusText(payload);
  if (text === undefined) return;
  try {
    entry.onStatus?.(text);
  } catch (error) {
    entry.settle(error instanceof Error ? error : new Error(String(error)));
  }
}
