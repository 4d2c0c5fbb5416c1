/**
 * The claim contract: what a worker knows of the runs of a call in other workers, before it runs
 * the call itself.
 */
import type { Delivery } from "../../broker/broker.ts";
import type { RunningEntry } from "./ledger.ts";
import { mayHaveStarted } from "./redelivery.ts";

/** What other workers did with a call. */
export type CallHistory =
  | {
      readonly kind: "open";
      /** Runs that workers began and did not live to answer. */
      readonly runs: number;
      /** Whether the tool may have run. */
      readonly mayHaveStarted: boolean;
    }
  | {
      readonly kind: "answered";
      /** What the caller got; undefined where that was too large to keep. */
      readonly answer: Uint8Array | undefined;
    }
  | {
      /** The run ended in a worker that has lost the broker since. */
      readonly kind: "unpublished";
      /** What the caller is to get. */
      readonly answer: Uint8Array;
    };

/** A call that this worker handles. Disposing ends what keeps the claim alive. */
export interface CallClaim extends Disposable {
  /** Whether histories are facts: then a call without a started run may go to any other worker. */
  readonly isCertain: boolean;
  /**
   * Whether another worker began the call after the history was read, so that it has to be read
   * again.
   */
  readonly isSuperseded: boolean;
  /**
   * Waits while another worker runs the call, unless it is urgent. Rejects with NotStartedError
   * when the broker has the call again, and with the signal's reason.
   */
  history(signal: AbortSignal, isUrgent: boolean): Promise<CallHistory>;
  /**
   * Claims the run; to be called right before the tool's process may run. Rejects with
   * NotStartedError when the call is taken or the broker has it again, with StoreError, and with
   * the signal's reason.
   */
  begin(isRepeatable: boolean, signal: AbortSignal): Promise<void>;
  /**
   * To be called before the answer is published. Resolves to whether another worker answered the
   * call meanwhile. Another worker may publish `payload` when this one cannot; undefined when it
   * must not.
   */
  isAnswered(payload: Uint8Array | undefined): Promise<boolean>;
  /**
   * Aborts with OvertakenError when another worker has answered while the connection of the call
   * is lost. Undefined where none can.
   */
  readonly overtaken: AbortSignal | undefined;
  /** To be called when the broker has the answer, and before the call is settled. */
  answered(payload: Uint8Array): Promise<void>;
  /**
   * To be called when the call is requeued. Leaves its answer to others, if there is one, or
   * forgets the run of a repeatable call.
   */
  release(): Promise<void>;
}

/** A call whose history was read. */
export interface Claimed {
  readonly claim: Pick<CallClaim, "begin" | "isCertain">;
  readonly mayHaveStarted: boolean;
}

/** Makes the claims of one worker. Its owner disposes it after the last call. */
export interface Claims extends AsyncDisposable {
  /** @param entry the deliveries of the call */
  open(
    key: string,
    delivery: Delivery,
    entry: Pick<RunningEntry, "isLost" | "cameAgain">,
  ): CallClaim;
}

/** The call was not started here: another worker runs it, or will get it from the broker. */
export class NotStartedError extends Error {
  constructor(message: string) {
    super(message);
    this.name = "NotStartedError";
  }
}

/** Claims without a store that workers share: each delivery of a call may have been a run. */
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
    isAnswered: () => Promise.resolve(false),
    overtaken: undefined,
    answered: () => Promise.resolve(),
    release: () => Promise.resolve(),
    [Symbol.dispose]: () => undefined,
  }),
  [Symbol.asyncDispose]: () => Promise.resolve(),
};
