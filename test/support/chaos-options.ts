/**
 * How bad a chaos gets.
 */

/**
 * What happens is counted in calls, not in seconds, so that on a busy machine, where calls take longer, they meet no more of
 * it.
 */
export interface ChaosOptions {
  readonly calls: number;
  readonly inFlight: number;
  readonly workers: number;
  /** Calls answered between two killed workers, and between two cuts, on average. */
  readonly callsPerKill: number;
  readonly callsPerCut: number;
  /** As the workers' variable of that name. */
  readonly maxDeliveries: number;
}

/**
 * Some calls, with as many deliveries as workers have unless told otherwise: a call is then given up when it has come back to
 * its queue three times, and lost by the broker when it has five times. With so many kills and cuts about one call in forty
 * comes back three times, and one that does so five times was never seen.
 */
export const littleChaos: ChaosOptions = {
  calls: 40,
  inFlight: 8,
  workers: 2,
  callsPerKill: 8,
  callsPerCut: 12,
  maxDeliveries: 5,
};

/** As bad as it gets. Nobody is given up, so that every call has to be run or refused for the right reason. */
export const muchChaos: ChaosOptions = {
  calls: 1_000,
  inFlight: 16,
  workers: 3,
  callsPerKill: 10,
  callsPerCut: 20,
  maxDeliveries: 100,
};
