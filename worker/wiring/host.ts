/**
 * What the parts of a worker use of its process.
 */
import type { Config, Environment } from "../config/config.ts";
import type { preparePython } from "../runners/python/host.ts";
import type { BackendSettings } from "../sandbox/registry.ts";
import { type Clock, systemClock } from "../support/clock.ts";
import type { Logger } from "../telemetry/logger.ts";

/** Services of the process. */
export interface Host {
  readonly log: Logger;
  readonly clock: Clock;
  /** The process's environment; the manifest grants tools parts of it. */
  readonly environment: Environment;
  /** Each worker prepares its own unless given. */
  readonly preparations?: Preparations;
}

/** The costly parts of a start whose results several workers of one process can share. */
export interface Preparations {
  /** Asks bubblewrap for its version. */
  readonly identify: NonNullable<BackendSettings["bubblewrap"]["identify"]>;
  /** Tries control groups. */
  readonly tryGroups: NonNullable<BackendSettings["bubblewrap"]["tryGroups"]>;
  /** Runs the trials of the host. */
  readonly tryHost: NonNullable<BackendSettings["bubblewrap"]["tryHost"]>;
  /** Asks the interpreter about itself and compiles the tool runner. */
  readonly preparePython: typeof preparePython;
  /** Runs the trial of a network, for sandboxes by this configuration. */
  readonly tryNetwork: (sandbox: Config["sandbox"], trial: () => Promise<void>) => Promise<void>;
}

/** A host on the system clock. */
export function createHost(
  log: Logger,
  environment: Environment,
  preparations?: Preparations,
): Host {
  return { log, clock: systemClock, environment, ...(preparations && { preparations }) };
}

/** Whether this process may become another user. */
export function isRoot(): boolean {
  return process.getuid?.() === 0;
}
