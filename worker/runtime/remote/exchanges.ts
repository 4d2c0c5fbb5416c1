/**
 * Requests to other workers, and the wait for their answers.
 */
import { BrokerError, type OutboundMessage } from "../../broker/broker.ts";
import type { ReconnectingSession } from "../../broker/reconnecting.ts";
import { GatewayError } from "../../gateway/gateway.ts";
import { InvocationError } from "../../protocol/errors.ts";
import { encodeCancel } from "../../protocol/messages/cancel.ts";
import { cancelTopic } from "../../protocol/topics.ts";
import type { Clock } from "../../support/clock.ts";
import { Semaphore } from "../../support/semaphore.ts";
import { abortable, withTimeout } from "../../support/timeout.ts";
import { cancelledCall } from "../inner-call.ts";
import type { ExpectedReply, Replies } from "./replies.ts";

/** Calls that wait for other workers. */
export const maxWaitingCalls = 1_000;
/** Requests on their way to the broker: large ones would fill the place of answers. */
const maxSending = 4;
/** Milliseconds that sending a cancel may take. */
const cancelMs = 10_000;
/** Seconds after which a cancel on its way is worth nothing. */
const cancelLifeSeconds = 60;

/** Dependencies of {@link Exchanges}. */
export interface ExchangeParts {
  readonly session: Pick<ReconnectingSession, "publish" | "connection">;
  readonly namespace: string;
  readonly replies: Replies;
  readonly clock: Clock;
}

/** A request that is to be sent. */
export interface Outgoing {
  readonly requestFor: (reply: ExpectedReply) => OutboundMessage;
  /** Told right before the request may reach a worker, which waits for it. */
  readonly onSend: () => Promise<void>;
  readonly leftMs: number;
}

/** Its owner disposes it before the session, and after the last exchange. */
export class Exchanges implements AsyncDisposable {
  readonly #parts: ExchangeParts;
  readonly #sending = new Semaphore({ capacity: maxSending, maxWaiting: maxWaitingCalls });
  readonly #end = new AbortController();
  readonly #cancels = new Set<Promise<void>>();
  #waiting = 0;

  constructor(parts: ExchangeParts) {
    this.#parts = parts;
  }

  /**
   * Resolves to the answer. Throws InvocationError or GatewayError. A request without an answer is
   * cancelled: nobody waits for its end.
   */
  async run(outgoing: Outgoing, stopped: AbortSignal): Promise<Uint8Array> {
    if (this.#waiting + this.#cancels.size >= maxWaitingCalls) {
      const message = `The worker is busy: ${maxWaitingCalls} calls wait for other workers already`;
      throw new InvocationError("RESOURCE_EXHAUSTED", message);
    }
    this.#waiting++;
    try {
      return await this.#run(outgoing, stopped);
    } finally {
      this.#waiting--;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#end.abort(new Error("the worker calls no other workers any more"));
    await Promise.all(this.#cancels);
  }

  async #run({ leftMs, ...outgoing }: Outgoing, stopped: AbortSignal): Promise<Uint8Array> {
    const { session, replies, clock } = this.#parts;
    const { connection } = session;
    using reply = replies.expect();
    const request = outgoing.requestFor(reply);
    let isSent = false;
    let isOpen = false;
    const stop = AbortSignal.any([stopped, connection]);
    let end = stop;
    try {
      return await withTimeout(leftMs, clock, stop, async (over) => {
        end = over;
        await replies.start(over);
        {
          using _sending = await this.#sending.acquire(over);
          await outgoing.onSend();
          over.throwIfAborted();
          isSent = isOpen = true;
          const outcome = await session.publish(request, over);
          isOpen = outcome !== "unroutable";
          if (!isOpen) throw unavailable("No worker serves the tool");
        }
        const { payload } = await abortable(reply.answered, over);
        isOpen = false;
        return payload;
      });
    } catch (error) {
      if (stopped.aborted) throw cancelledCall();
      if (!end.aborted && !(error instanceof BrokerError)) throw error;
      throw problemOf(error, isSent, connection);
    } finally {
      if (isOpen) this.#cancel(request, reply);
    }
  }

  /** Best effort: its failure changes nothing. */
  #cancel({ properties = {} }: OutboundMessage, { id, replyTo }: ExpectedReply): void {
    const { session, namespace, clock } = this.#parts;
    const { clientId = "", userId = "" } = properties;
    const message = {
      topic: cancelTopic(namespace, id),
      payload: encodeCancel(id),
      // Workers compare them with those of the call.
      properties: { replyTo, clientId, userId },
      timeToLiveSeconds: cancelLifeSeconds,
    };
    const sending = withTimeout(cancelMs, clock, this.#end.signal, async (over) => {
      await session.publish(message, over);
    })
      .catch(() => undefined)
      .finally(() => this.#cancels.delete(sending));
    this.#cancels.add(sending);
  }
}

/** Why there is no answer. A tool that may have run is not to be called again. */
function problemOf(cause: unknown, isSent: boolean, connection: AbortSignal): Error {
  if (connection.aborted && isSent) {
    const message = "The connection to the broker was lost; the tool may have run";
    return new InvocationError("SANDBOX_FAILED", message, { cause });
  }
  if (connection.aborted) return unavailable("The worker has no connection to the broker", cause);
  if (cause instanceof BrokerError) {
    const { transient: retryable } = cause;
    const message = "The broker did not take the call";
    return new GatewayError("TOOL_NOT_AVAILABLE", "select_backend", message, { cause, retryable });
  }
  const message = "No worker answered in time; the tool may have run";
  return new InvocationError("SANDBOX_TIMEOUT", message, { cause });
}

function unavailable(message: string, cause?: unknown): InvocationError {
  return new InvocationError("TOOL_NOT_AVAILABLE", message, { cause, op: "select_backend" });
}
