/**
 * How bad a chaos gets.
 */
import type { ChaosActName } from "./chaos-acts.ts";

/** Acts that are done one after the other. */
export interface ChaosLane {
  readonly acts: readonly ChaosActName[];
  /**
   * Calls that are over between two acts, give or take a half. Counted in calls, not in seconds, so that on a busy machine,
   * where calls take longer, they meet no more of it.
   */
  readonly callsBetween: number;
  /** Whether the acts are done once, in this order, or again and again, in orders that chance decides. */
  readonly isOnce: boolean;
}

export interface ChaosOptions {
  readonly calls: number;
  /** Calls, at most, when not every act is done after those above. */
  readonly maxCalls: number;
  readonly inFlight: number;
  readonly workers: number;
  /** As the workers' variable of that name. */
  readonly maxDeliveries: number;
  /** Beside each other. */
  readonly lanes: readonly ChaosLane[];
}

/**
 * Everything once, with as many deliveries as workers have unless told otherwise. In an order in which a worker that was started
 * in the place of another has time to come up before the next one goes.
 */
export const littleChaos: ChaosOptions = {
  calls: 40,
  maxCalls: 400,
  inFlight: 8,
  workers: 2,
  maxDeliveries: 5,
  lanes: [
    {
      acts: [
        "cut while it answers",
        "kill without its answer",
        "cut all",
        "cut without its settlement",
        "drain",
        "restart",
        "stop at once",
        "kill while it runs",
      ],
      callsBetween: 2,
      isOnce: true,
    },
  ],
};

/** Everything at once and again and again, and the broker restarted on the way. */
function worst(calls: number, maxDeliveries: number): ChaosOptions {
  return {
    calls,
    maxCalls: 2 * calls,
    inFlight: 16,
    workers: 3,
    maxDeliveries,
    lanes: [
      {
        acts: [
          "kill any",
          "kill while it runs",
          "kill while it answers",
          "kill without its answer",
          "drain",
          "stop at once",
        ],
        callsBetween: 20,
        isOnce: false,
      },
      {
        acts: ["cut one", "cut while it answers", "cut all"],
        callsBetween: 25,
        isOnce: false,
      },
      { acts: ["withdraw", "cut without its settlement"], callsBetween: 30, isOnce: false },
      { acts: ["restart"], callsBetween: calls / 2, isOnce: true },
    ],
  };
}

/**
 * As bad as it gets. With more deliveries than a call can need nobody is given up, so that every call has to be answered, and
 * run or refused for the right reason. That needs many: of 1,000 calls 10 to 30 were handed out four times, and with 5
 * deliveries that is when they are `POISONED`. One in eight of those was handed out for the fifth and last time, as its worker
 * died over that answer, too. Another such death, and the broker puts the call aside without an answer, as it has to: one call
 * in some thousands.
 */
export const muchChaos: ChaosOptions = worst(1_000, 100);

/**
 * With as many deliveries as workers have unless told otherwise. A call may be `POISONED` if the broker has handed it out as
 * often as that takes, and unanswered if it was handed out for the last time: by the broker's own count, which is seen on its
 * way to the worker.
 */
export const muchPoison: ChaosOptions = worst(300, 5);

/** The chaos of a thousand calls, on each broker. */
export const chaosRuns = [
  ["with more deliveries than a call can need", muchChaos],
  ["with as many as workers have unless told otherwise", muchPoison],
] as const;

/** Milliseconds for one of them on a busy machine. */
export const chaosTimeoutMs = 900_000;
