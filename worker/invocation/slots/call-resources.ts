/**
 * What a call holds: its slot, its tool's code, the sandbox.
 */
import type { Starts } from "../../pool/starts.ts";

/** Given back in reverse order, but for the slot: at the latest when the sandbox is gone. */
export class CallResources implements AsyncDisposable {
  /** Fulfils when the sandbox is gone, for which the answer need not wait: `ExitReport.ending`. */
  ending: Promise<void> | undefined;
  readonly #starts: Pick<Starts, "disposeLater">;
  readonly #stack = new AsyncDisposableStack();
  #slot: Disposable | undefined;

  constructor(starts: Pick<Starts, "disposeLater">) {
    this.#starts = starts;
  }

  /** Takes the call's slot, which is free when the sandbox is gone: nothing else is waited for. */
  useSlot(slot: Disposable): void {
    this.#slot = this.#stack.use(slot);
  }

  /** Takes a resource and returns it. */
  use<Resource extends Disposable | AsyncDisposable | undefined>(resource: Resource): Resource {
    return this.#stack.use(resource);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const { ending } = this;
    if (ending === undefined) return await this.#stack.disposeAsync();
    void ending.then(() => this.#slot?.[Symbol.dispose]());
    this.#starts.disposeLater(this.#stack);
  }
}
