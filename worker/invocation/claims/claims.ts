/**
 * The claim contract: which runs of a call other workers have started or answered.
 */
import type { Delivery } from "../../broker/broker.ts";
import type { RunningEntry } from "./ledger.ts";
import { mayHaveStarted } from "./redelivery.ts";

/** History of a call in other workers. */
export type CallHistory =
  | {
      readonly kind: "open";
      /** Runs whose workers ended before they answered. */
      readonly runs: number;
      /** Whether the tool may have started. */
      readonly mayHaveStarted: boolean;
    }
  | {
      readonly kind: "answered";
      /** The published answer; undefined for one that was too large to keep. */
      readonly answer: Uint8Array | undefined;
    }
  | {
      /** The run ended in a worker that has lost its broker connection. */
      readonly kind: "unpublished";
      /** The answer to publish. */
      readonly answer: Uint8Array;
    };

/** A call that this worker handles. Disposing ends the heartbeat of the claim. */
export interface CallClaim extends Disposable {
  /** Whether histories are facts, so that a call without a started run is safe to requeue. */
  readonly isCertain: boolean;
  /** Whether another worker started the call after the history was read. Then read it again. */
  readonly isSuperseded: boolean;
  /**
   * Waits while another worker runs the call, unless urgent. Rejects with NotStartedError when the
   * broker redelivers the call, and with the signal's reason.
   */
  history(signal: AbortSignal, isUrgent: boolean): Promise<CallHistory>;
  /**
   * Claims the run. Call right before the tool's process may run. Rejects with NotStartedError when
   * the claim is superseded or the broker redelivers, StoreError, and the signal's reason.
   */
  begin(isRepeatable: boolean, signal: AbortSignal): Promise<void>;
  /**
   * Marks the run of a repeatable call. Call before a tool that must not run twice starts for it.
   * Rejects with NotStartedError when another worker may run the call, and StoreError.
   */
  keep(): Promise<void>;
  /**
   * Call before publishing the answer. Resolves to whether another worker has answered the call.
   * Another worker may publish `payload` when this one cannot; undefined forbids that.
   */
  isAnswered(payload: Uint8Array | undefined): Promise<boolean>;
  /**
   * Aborts with OvertakenError when another worker answers while the call's connection is lost.
   * Undefined where no other worker can answer.
   */
  readonly overtaken: AbortSignal | undefined;
  /** Call after the broker has confirmed the answer, before settling. */
  answered(payload: Uint8Array): Promise<void>;
  /** Call when requeuing. Hands over the answer, or removes the run mark of a repeatable call. */
  release(): Promise<void>;
}

/** A claim whose history was read. */
export interface Claimed {
  readonly claim: Pick<CallClaim, "begin" | "keep" | "isCertain">;
  readonly mayHaveStarted: boolean;
}

/** Creates the claims of one worker. The owner disposes it after the last call. */
export interface Claims extends AsyncDisposable {
  /** @param entry the deliveries of the call */
  open(
    key: string,
    delivery: Delivery,
    entry: Pick<RunningEntry, "isLost" | "cameAgain">,
  ): CallClaim;
}

/** This worker does not start the call: another worker runs it, or the broker redelivers it. */
export class NotStartedError extends Error {
  constructor(message: string) {
    super(message);
    this.name = "NotStartedError";
  }
}

/** Claims without a shared store: each former delivery counts as a possible run. */
export const guessedClaims: Claims = {
  open: (_key, delivery, { isLost }) => ({
    isCertain: false,
    isSuperseded: false,
    history: () =>
      Promise.resolve({
        kind: "open",
        runs: delivery.maxDeliveries === undefined ? 0 : delivery.deliveryCount - 1,
        mayHaveStarted: mayHaveStarted(delivery),
      }),
    begin: () =>
      isLost() ? Promise.reject(new NotStartedError("the connection is lost")) : Promise.resolve(),
    keep: () => Promise.resolve(),
    isAnswered: () => Promise.resolve(false),
    overtaken: undefined,
    answered: () => Promise.resolve(),
    release: () => Promise.resolve(),
    [Symbol.dispose]: () => undefined,
  }),
  [Symbol.asyncDispose]: () => Promise.resolve(),
};
