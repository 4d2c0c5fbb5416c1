/**
 * The slot of a call. While its tool waits for tools that it has called, the slot is lent, since
 * as many such calls as slots would wait for each other forever.
 * docs/adr/0044-lent-slots.md says why.
 */
import { InvocationError } from "../../protocol/errors.ts";
import { Semaphore } from "../../support/semaphore.ts";

/** Bounds the calls of a worker whose slots are lent. */
export class LentSlots {
  /** `SANDBOX_MAX_SUSPENDED`. */
  readonly max: number;
  /** Permits of new calls that may lend: no more start than may have lent their slots. */
  readonly lenders: Semaphore;
  #count = 0;

  /** @param maxWaiting new calls that wait for a permit */
  constructor(max: number, maxWaiting: number) {
    this.max = max;
    this.lenders = new Semaphore({ capacity: max, maxWaiting });
  }

  get count(): number {
    return this.#count;
  }

  /** Counts one more. Throws InvocationError `RESOURCE_EXHAUSTED` beyond the bound. */
  add(): void {
    if (this.#count >= this.max) {
      const message = `The worker is busy: ${this.max} calls wait for calls of their own already`;
      throw new InvocationError("RESOURCE_EXHAUSTED", message);
    }
    this.#count++;
  }

  remove(): void {
    this.#count--;
  }
}

/** The slot of one call. Its owner disposes it. */
export class CallSlot implements Disposable {
  readonly #slots: Semaphore;
  readonly #lent: LentSlots;
  readonly #permit: Disposable | undefined;
  #lease: Disposable | undefined;
  /** Calls of its own that run. */
  #running = 0;
  #isLent = false;
  #returning: Promise<void> | undefined;
  #isOver = false;

  /**
   * The slot owns both leases from now on.
   *
   * @param lease a permit of `slots`
   * @param permit one of `lent.lenders`, of a new call that may lend
   */
  constructor(slots: Semaphore, lent: LentSlots, lease: Disposable, permit?: Disposable) {
    this.#slots = slots;
    this.#lent = lent;
    this.#lease = lease;
    this.#permit = permit;
  }

  /**
   * Call before a call of its own begins; then call `end`. Throws InvocationError
   * `RESOURCE_EXHAUSTED` when too many slots are lent.
   */
  begin(): void {
    if (this.#running === 0) this.#lend();
    this.#running++;
  }

  /**
   * Call when it has ended, before the tool gets the answer: after the last running one it waits
   * for the slot, ahead of new calls. Rejects with the signal's reason, which is that of all calls
   * of the slot.
   */
  async end(signal: AbortSignal): Promise<void> {
    this.#running--;
    if (this.#running > 0 || !this.#isLent) return;
    // Others that end meanwhile wait for the same permit: the slot has one.
    this.#returning ??= this.#takeBack(signal).finally(() => (this.#returning = undefined));
    await this.#returning;
  }

  [Symbol.dispose](): void {
    this.#isOver = true;
    if (this.#isLent) this.#lent.remove();
    this.#isLent = false;
    this.#lease?.[Symbol.dispose]();
    this.#lease = undefined;
    this.#permit?.[Symbol.dispose]();
  }

  #lend(): void {
    if (this.#isLent || this.#isOver) return;
    this.#lent.add();
    this.#isLent = true;
    this.#lease?.[Symbol.dispose]();
    this.#lease = undefined;
  }

  async #takeBack(signal: AbortSignal): Promise<void> {
    const lease = await this.#slots.acquire(signal, "returning");
    // Meanwhile another call may have started, or the slot been disposed.
    if (this.#isOver || this.#running > 0) return lease[Symbol.dispose]();
    this.#isLent = false;
    this.#lent.remove();
    this.#lease = lease;
  }
}
