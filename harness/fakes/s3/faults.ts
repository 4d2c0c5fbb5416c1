/**
 * What goes wrong on command.
 */
import type { S3Operation } from "./request.ts";

/** One fault. */
export type S3FaultKind =
  /** Answers with an error, and does nothing. */
  | { readonly kind: "error"; readonly status: number; readonly code: string }
  /** Cuts the connection before the request is read. */
  | { readonly kind: "cut request" }
  /** Does what is asked, and cuts the connection in place of an answer. */
  | { readonly kind: "lose answer" }
  /** Cuts the connection after so many bytes of the answer's body. */
  | { readonly kind: "cut answer"; readonly afterBytes: number }
  /** Changes the last byte of the answer's body. */
  | { readonly kind: "damage answer" }
  /** Never answers. */
  | { readonly kind: "stall" };

/** When it happens. */
export interface S3Fault {
  readonly operation: S3Operation;
  /** To the next requests of this number; 1 unless told. */
  readonly times?: number;
  readonly fault: S3FaultKind;
}

/** Faults that are still to come. */
export class S3Faults {
  readonly #pending = new Set<{ readonly rule: S3Fault; left: number }>();

  /** Disposing takes it back. */
  add(rule: S3Fault): Disposable {
    const pending = { rule, left: rule.times ?? 1 };
    this.#pending.add(pending);
    return { [Symbol.dispose]: () => void this.#pending.delete(pending) };
  }

  /** The fault of a request, which has then happened. */
  take(operation: S3Operation): S3FaultKind | undefined {
    for (const pending of this.#pending) {
      if (pending.rule.operation !== operation) continue;
      if (--pending.left === 0) this.#pending.delete(pending);
      return pending.rule.fault;
    }
    return undefined;
  }
}
