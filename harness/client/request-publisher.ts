/**
 * Publishes the requests of an agent, a bounded number at a time.
 */
import type { BrokerSession, OutboundMessage, PublishOutcome } from "../../worker/broker/broker.ts";
import { encodeCancel } from "../../worker/protocol/messages/cancel.ts";
import {
  cancelTopic,
  invokeTopic,
  responseTopic,
  statusTopic,
} from "../../worker/protocol/topics.ts";
import type { Clock } from "../../worker/support/clock.ts";
import { Semaphore } from "../../worker/support/semaphore.ts";

/**
 * Requests on their way to the broker without its confirmation, by their size; further ones wait
 * for these. So many fit into what a session keeps while there is no connection, and large ones
 * keep no small ones waiting.
 */
const maxSending = { small: 512, large: 9 } as const;
const smallBytes = 64 * 1024;

/** Seconds after which a cancel on its way is worth nothing. */
const cancelLifeSeconds = 60;

/** What is published for a call. */
export interface Request extends Pick<OutboundMessage, "payload" | "timeToLiveSeconds"> {
  readonly id: string;
  readonly userId: string;
  /** W3C trace context. */
  readonly traceparent?: string | undefined;
}

/** On whose behalf requests are published, and where their answers go. */
export interface RequestPublisherOptions {
  readonly session: BrokerSession;
  readonly namespace: string;
  readonly agentName: string;
  readonly inbox: string;
  readonly clock: Pick<Clock, "nowMs">;
}

/** Publishes over one session, which its owner closes. */
export class RequestPublisher {
  readonly #options: RequestPublisherOptions;
  /** Their lines are bounded by the calls that may wait for an answer. */
  readonly #sending = {
    small: new Semaphore({ capacity: maxSending.small, maxWaiting: Infinity }),
    large: new Semaphore({ capacity: maxSending.large, maxWaiting: Infinity }),
  };

  constructor(options: RequestPublisherOptions) {
    this.#options = options;
  }

  /**
   * With the user properties of real agents. The time is that of the call: however late it is sent,
   * its caller waits no longer. Throws BrokerError, or the signal's reason.
   */
  async publish(
    tool: string,
    { id, userId, traceparent, ...message }: Request,
    signal: AbortSignal,
  ): Promise<PublishOutcome> {
    const { session, namespace } = this.#options;
    const own = this.#properties(id, userId);
    const properties = traceparent === undefined ? own : { ...own, traceparent };
    const topic = invokeTopic(namespace, tool);
    const size = message.payload.byteLength > smallBytes ? "large" : "small";
    using _sending = await this.#sending[size].acquire(signal);
    return await session.publish({ topic, properties, ...message }, signal);
  }

  /**
   * The same, until the result is disposed: that gives up a request which the broker has not
   * confirmed.
   */
  begin(
    tool: string,
    request: Request,
  ): Disposable & { readonly outcome: Promise<PublishOutcome> } {
    const over = new AbortController();
    let isSettled = false;
    const settle = (): void => void (isSettled = true);
    const outcome = this.publish(tool, request, over.signal);
    outcome.then(settle, settle);
    return {
      outcome,
      [Symbol.dispose]: () => {
        if (!isSettled) over.abort(new Error("the call is over"));
      },
    };
  }

  /** Cancels a call, to every worker. Throws BrokerError, or the signal's reason. */
  async cancel(
    { id, userId }: Pick<Request, "id" | "userId">,
    signal: AbortSignal,
  ): Promise<PublishOutcome> {
    const { session, namespace } = this.#options;
    const [topic, payload] = [cancelTopic(namespace, id), encodeCancel(id)];
    // Workers compare them with those of the call.
    const properties = this.#properties(id, userId);
    const message = { topic, payload, properties, timeToLiveSeconds: cancelLifeSeconds };
    return await session.publish(message, signal);
  }

  #properties(id: string, userId: string): Readonly<Record<string, string | number>> {
    const { namespace, agentName, inbox, clock } = this.#options;
    return {
      replyTo: responseTopic(namespace, inbox, id),
      statusTo: statusTopic(namespace, inbox, id),
      clientId: agentName,
      userId,
      timestamp: clock.nowMs(),
    };
  }
}
