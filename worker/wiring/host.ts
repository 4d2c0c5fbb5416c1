/**
 * What the parts of a worker use of its process.
 */
import type { Environment } from "../config/config.ts";
import { type Clock, systemClock } from "../support/clock.ts";
import type { Logger } from "../telemetry/logger.ts";

/** Services of the process. */
export interface Host {
  readonly log: Logger;
  readonly clock: Clock;
  /** The process's environment; the manifest grants tools parts of it. */
  readonly environment: Environment;
}

/** A host on the system clock. */
export function createHost(log: Logger, environment: Environment): Host {
  return { log, clock: systemClock, environment };
}

/** Whether this process may become another user. */
export function isRoot(): boolean {
  return process.getuid?.() === 0;
}
