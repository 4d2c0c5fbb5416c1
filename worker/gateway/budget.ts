/**
 * What a program may still do, counted.
 */
import { type GatewayLimits, defaultGatewayLimits } from "../protocol/tool-calls/limits.ts";
import { type Clock, systemClock } from "../support/clock.ts";
import { Semaphore } from "../support/semaphore.ts";
import type { GatewayError } from "./gateway.ts";
import { greatestDepth, limitReached, maxRefusals } from "./limits.ts";
import { Pace } from "./pace.ts";

/** Calls that are counted already. Disposal gives those back that did not start. */
export interface CallReservation extends Disposable {
  /** Spends one of the calls. */
  start(): void;
}

/** What a budget is made with. */
export interface BudgetOptions {
  /** Of the program's own call: 0, the default, unless a program called it. */
  readonly depth?: number;
  readonly clock?: Clock;
  /** That end the program; `maxRefusals` by default. */
  readonly refusals?: number;
}

/** The budget of one program, shared by all its operations. */
export class CallBudget {
  readonly limits: GatewayLimits;
  /** Depth of the calls of this program; those of an agent have 0. */
  readonly callDepth: number;
  readonly #pace: Pace;
  readonly #running: Semaphore;
  readonly #maxRefusals: number;
  readonly #ended = new AbortController();
  #calls = 0;
  #lookups = 0;
  #artifactBytes = 0;
  #refusals = 0;

  constructor(
    limits: GatewayLimits = defaultGatewayLimits,
    { depth = 0, clock = systemClock, refusals = maxRefusals }: BudgetOptions = {},
  ) {
    this.#maxRefusals = refusals;
    this.limits = { ...limits, maxDepth: Math.min(limits.maxDepth, greatestDepth) };
    this.callDepth = depth + 1;
    this.#pace = new Pace(limits.maxOperationsPerSecond, clock);
    // The calls that wait are reserved: `maxToolCalls` bounds them.
    const capacity = limits.maxConcurrentCalls;
    this.#running = new Semaphore({ capacity, maxWaiting: Infinity });
  }

  /** Aborts by the refusal that ends the program, as do all later operations. */
  get ended(): AbortSignal {
    return this.#ended.signal;
  }

  /** Waits for the time of an operation of any kind. */
  async enter(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    this.ended.throwIfAborted();
    const isInTime = await this.#pace.enter(signal);
    signal.throwIfAborted();
    if (isInTime) return;
    const bound = this.limits.maxOperationsPerSecond;
    const message = `The program makes more than ${bound} operations a second`;
    throw this.refused(limitReached("max_operations_per_second", bound, message, true));
  }

  /** Spends a lookup. */
  lookUp(): void {
    const bound = this.limits.maxLookups;
    if (this.#lookups >= bound) {
      const message = `The program may look up tools ${bound} times`;
      throw this.refused(limitReached("max_lookups", bound, message));
    }
    this.#lookups++;
  }

  /** Reserves a call. The caller disposes it. */
  reserveCall(): CallReservation {
    return this.#reserve(1);
  }

  /** Reserves a call for each step: too long a chain gets none. The caller disposes it. */
  reserveChain(steps: number): CallReservation {
    const bound = this.limits.maxChainSteps;
    if (steps > bound) {
      const message = `A chain may have ${bound} steps; this one has ${steps}`;
      throw this.#refusedCall(limitReached("max_chain_steps", bound, message));
    }
    return this.#reserve(steps);
  }

  /** Waits until a reserved call or chain may run. The caller disposes it after the run. */
  run(signal: AbortSignal): Promise<Disposable> {
    return this.#running.acquire(signal);
  }

  /**
   * Spends bytes of artifacts before they are loaded. The result gives the unused ones back, once
   * the load has succeeded: one that fails or is aborted may have read them all.
   */
  loadBytes(sizeBytes: number): (usedBytes: number) => void {
    const bound = this.limits.maxArtifactBytes;
    if (this.#artifactBytes + sizeBytes > bound) {
      const message = `The program may load ${bound} bytes of artifacts`;
      throw this.refused(limitReached("max_artifact_bytes", bound, message));
    }
    this.#artifactBytes += sizeBytes;
    return (usedBytes) => {
      this.#artifactBytes -= sizeBytes - usedBytes;
    };
  }

  /** Counts a refusal, to be thrown. */
  refused(error: GatewayError): GatewayError {
    this.#refusals++;
    if (this.#refusals === this.#maxRefusals) {
      const message = `The program went on after ${this.#maxRefusals} refusals`;
      this.#ended.abort(limitReached("tool_calls", this.#maxRefusals, message));
    }
    return error;
  }

  #reserve(count: number): CallReservation {
    const { maxToolCalls, maxDepth } = this.limits;
    if (this.callDepth > maxDepth) {
      const message = `A program called by programs may not call tools beyond a depth of ${maxDepth}`;
      throw this.#refusedCall(limitReached("max_depth", maxDepth, message));
    }
    if (this.#calls + count > maxToolCalls) {
      const left = maxToolCalls - this.#calls;
      const message = `The program may make ${maxToolCalls} calls, and has ${left} left`;
      throw this.#refusedCall(limitReached("max_tool_calls", maxToolCalls, message));
    }
    this.#calls += count;
    let waiting = count;
    return {
      start: () => {
        if (waiting === 0) throw new RangeError("more calls start than are reserved");
        waiting--;
      },
      [Symbol.dispose]: () => {
        this.#calls -= waiting;
        waiting = 0;
      },
    };
  }

  /** A refused call or chain is a call, too. */
  #refusedCall(error: GatewayError): GatewayError {
    this.#calls = Math.min(this.#calls + 1, this.limits.maxToolCalls);
    return this.refused(error);
  }
}
