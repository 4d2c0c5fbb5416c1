/**
 * The end of a connection, and answers that are awaited until then.
 */
import { abortable } from "../support/timeout.ts";
import { BrokerError, type SessionEnd } from "./broker.ts";
import { reasonOf } from "./log.ts";

/** How a connection ended, as a promise and as a signal. */
export class ConnectionEnd {
  /** Fulfils when the connection ended; never rejects. */
  readonly closed: Promise<SessionEnd>;
  readonly #closed = Promise.withResolvers<SessionEnd>();
  readonly #ended = new AbortController();

  constructor() {
    this.closed = this.#closed.promise;
  }

  /** Aborts when the connection ended, with a BrokerError as its reason. */
  get signal(): AbortSignal {
    return this.#ended.signal;
  }

  /** Whether the connection had not ended before. */
  finish(end: SessionEnd): boolean {
    if (this.signal.aborted) return false;
    const { cause } = end;
    this.#ended.abort(new BrokerError("The broker session has ended", { cause, transient: true }));
    this.#closed.resolve(end);
    return true;
  }
}

export interface AnswerBounds {
  readonly signal: AbortSignal;
  readonly ended: AbortSignal;
  readonly limitMs: number;
  /** The error for a refusal, or for no answer in time. */
  readonly failure: (cause: unknown) => BrokerError;
}

export async function answered<T>(answer: Promise<T>, bounds: AnswerBounds): Promise<T> {
  const { signal, ended, limitMs, failure } = bounds;
  const timeout = AbortSignal.timeout(limitMs);
  try {
    return await abortable(answer, AbortSignal.any([signal, ended, timeout]));
  } catch (error) {
    signal.throwIfAborted();
    ended.throwIfAborted();
    throw failure(timeout.aborted ? new Error(`no answer within ${limitMs} ms`) : error);
  }
}

export function connectionLost(cause?: unknown, reason = reasonOf(cause)): BrokerError {
  const why = cause === undefined ? "" : `: ${reason}`;
  return new BrokerError(`The connection to the broker was lost${why}`, { cause, transient: true });
}
