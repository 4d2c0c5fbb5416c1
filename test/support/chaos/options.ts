/**
 * How bad a chaos gets.
 */
import type { ChaosActName } from "./acts.ts";

/** Acts that are done one after the other. */
export interface ChaosLane {
  readonly acts: readonly ChaosActName[];
  /**
   * Calls that are over between two acts, give or take a half. Counted in calls, not in seconds, so
   * that on a busy machine, where calls take longer, they meet no more of it.
   */
  readonly callsBetween: number;
  /**
   * Whether the acts are done once, in this order, or again and again, in orders that chance
   * decides.
   */
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
 * Everything once, with as many deliveries as workers have unless told otherwise. In an order in
 * which a worker that was started in the place of another has time to come up before the next one
 * goes.
 */
export const littleChaos: ChaosOptions = {
  calls: 40,
  maxCalls: 400,
  inFlight: 8,
  workers: 2,
  maxDeliveries: 50,
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

/**
 * As bad as it gets: everything at once and again and again, and the broker restarted on the way.
 * No call can need as many deliveries as there may be, so that every call has to be answered, and
 * run or refused for the right reason.
 */
export const muchChaos: ChaosOptions = {
  calls: 600,
  maxCalls: 2_000,
  inFlight: 16,
  workers: 3,
  maxDeliveries: 50,
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
    { acts: ["restart"], callsBetween: 300, isOnce: true },
  ],
};

/** Milliseconds for it on a busy machine. */
export const chaosTimeoutMs = 900_000;
