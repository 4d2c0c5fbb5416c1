/**
 * Faults on command in the requests of a double.
 */
import type { ServerResponse } from "node:http";

/** One fault. */
export type FaultKind =
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
export interface Fault<Operation, Kind> {
  readonly operation: Operation;
  /** To the next requests of this number; 1 unless told. */
  readonly times?: number;
  readonly fault: Kind;
}

/** Faults that are still to come. */
export class Faults<Operation, Kind = FaultKind> {
  readonly #pending = new Set<{ readonly rule: Fault<Operation, Kind>; left: number }>();

  /** Disposing takes it back. */
  add(rule: Fault<Operation, Kind>): Disposable {
    const pending = { rule, left: rule.times ?? 1 };
    this.#pending.add(pending);
    return { [Symbol.dispose]: () => void this.#pending.delete(pending) };
  }

  /** The fault of a request, which has then happened. */
  take(operation: Operation): Kind | undefined {
    for (const pending of this.#pending) {
      if (pending.rule.operation !== operation) continue;
      if (--pending.left === 0) this.#pending.delete(pending);
      return pending.rule.fault;
    }
    return undefined;
  }
}

/** Sends the body of an answer, whose head is written, as well as a fault lets it. */
export function sendBody(
  response: ServerResponse,
  body: Buffer,
  fault: FaultKind | undefined,
): void {
  if (fault?.kind === "cut answer") {
    response.write(body.subarray(0, fault.afterBytes), () => response.destroy());
  } else if (fault?.kind === "damage answer") {
    const damaged = Buffer.from(body);
    damaged.writeUInt8(damaged.readUInt8(damaged.length - 1) ^ 1, damaged.length - 1);
    response.end(damaged);
  } else response.end(body);
}
