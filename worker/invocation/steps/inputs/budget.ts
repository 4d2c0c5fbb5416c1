/**
 * Bounds the bytes of a call's inputs together. Inputs load concurrently, and are judged in the
 * order of the request: the same call fails with the same input each time. They also start in that
 * order, so that an earlier one never waits for a permit of a later one that waits for it.
 */
import type { InvocationError } from "../../../protocol/errors.ts";
import { abortable } from "../../../support/timeout.ts";
import { noDisk, notLoaded } from "./names.ts";
import type { ArtifactLimits } from "../transfers.ts";

/** Bounds on inputs. */
export interface InputBounds {
  readonly limits: Pick<ArtifactLimits, "maxBytes" | "callMaxBytes">;
  /** Spare disk for all inputs together. */
  readonly diskBytes: number;
}

/** Bytes that the inputs of a call may still have. */
export class InputBudget {
  readonly #bounds: InputBounds;
  #takenBytes = 0;
  #last: Promise<void> = Promise.resolve();

  constructor(bounds: InputBounds) {
    this.#bounds = bounds;
  }

  /** The share of the next input of the request. */
  next(parameter: string, filename: string): InputShare {
    const share = new InputShare(this, parameter, filename, this.#last);
    this.#last = share.taken;
    return share;
  }

  /** Takes the bytes of an input, in place of those taken before. Throws InvocationError. */
  take(parameter: string, filename: string, sizeBytes: number, takenBefore = 0): void {
    const { limits, diskBytes } = this.#bounds;
    const { maxBytes, callMaxBytes } = limits;
    if (sizeBytes > maxBytes) {
      const reason = `it has ${sizeBytes} bytes, at most ${maxBytes} are allowed`;
      throw notLoaded(parameter, filename, reason);
    }
    const takenBytes = this.#takenBytes + sizeBytes - takenBefore;
    const together = `the inputs have ${takenBytes} bytes together`;
    if (takenBytes > callMaxBytes) {
      const reason = `with it ${together}, at most ${callMaxBytes} are allowed`;
      throw notLoaded(parameter, filename, reason);
    }
    if (takenBytes > diskBytes) {
      const free = `${Math.max(0, diskBytes)} are free`;
      throw noDisk(filename, `it has ${sizeBytes} bytes, and with it ${together}, ${free}`);
    }
    this.#takenBytes = takenBytes;
  }
}

/** The part of the budget that one input takes, after all earlier inputs. */
export class InputShare {
  readonly #budget: InputBudget;
  readonly #parameter: string;
  readonly #filename: string;
  readonly #earlier: Promise<void>;
  readonly #taken = Promise.withResolvers<void>();
  #bytes = 0;

  constructor(budget: InputBudget, parameter: string, filename: string, earlier: Promise<void>) {
    this.#budget = budget;
    this.#parameter = parameter;
    this.#filename = filename;
    this.#earlier = earlier;
  }

  /** Stays pending after a failure: the failure ends the inputs that wait. */
  get taken(): Promise<void> {
    return this.#taken.promise;
  }

  /** Takes bytes in place of those taken before. Throws InvocationError or the signal's reason. */
  async take(sizeBytes: number, signal: AbortSignal): Promise<void> {
    await abortable(this.#earlier, signal);
    this.#budget.take(this.#parameter, this.#filename, sizeBytes, this.#bytes);
    this.#bytes = sizeBytes;
    this.#taken.resolve();
  }

  /** The refusal of an input that cannot be opened, in its turn. Throws the signal's reason. */
  async refusal(reason: string, cause: unknown, signal: AbortSignal): Promise<InvocationError> {
    await abortable(this.#earlier, signal);
    return notLoaded(this.#parameter, this.#filename, reason, cause);
  }
}
