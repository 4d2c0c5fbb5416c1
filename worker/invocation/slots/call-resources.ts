/**
 * What a call holds until its sandbox is gone: its slot, its tool's code, the sandbox.
 */
import type { Starts } from "../../pool/starts.ts";

/** Given back in reverse order. */
export class CallResources implements AsyncDisposable {
  /** Whether the sandbox is ending, so that the answer need not wait: `ExitReport.isEnding`. */
  isEnding = false;
  readonly #starts: Pick<Starts, "disposeLater">;
  readonly #stack = new AsyncDisposableStack();

  constructor(starts: Pick<Starts, "disposeLater">) {
    this.#starts = starts;
  }

  /** Takes a resource and returns it. */
  use<Resource extends Disposable | AsyncDisposable | undefined>(resource: Resource): Resource {
    return this.#stack.use(resource);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.isEnding) this.#starts.disposeLater(this.#stack);
    else await this.#stack.disposeAsync();
  }
}
