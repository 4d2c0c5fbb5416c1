/**
 * Faults on command in the requests of a double.
 */
import type { IncomingMessage, ServerResponse } from "node:http";

/** One fault. */
export type FaultKind =
  /** Answers with an error, which may come with status 200, and does nothing. */
  | { readonly kind: "error"; readonly status: number; readonly code: string }
  /** Cuts the connection before the request is read. */
  | { readonly kind: "cut request" }
  /** Does what is asked, and cuts the connection in place of an answer. */
  | { readonly kind: "lose answer" }
  /** Cuts the connection after so many bytes of the answer's body. */
  | { readonly kind: "cut answer"; readonly afterBytes: number }
  /** Changes the last byte of the answer's body. */
  | { readonly kind: "damage answer" }
  /** Does what is asked, and sends the answer's body once `until` has come. */
  | { readonly kind: "hold answer"; readonly until: Promise<unknown> }
  /** Never answers. */
  | { readonly kind: "stall" }
  /** Reads so many bytes of the request's body, and then nothing more. */
  | { readonly kind: "stall request"; readonly afterBytes: number }
  /** Sends so many bytes of the answer's body, and then nothing more. */
  | { readonly kind: "stall answer"; readonly afterBytes: number };

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

/** Reads so many bytes of a request's body, and leaves the rest to the client. */
export function readUntil(message: IncomingMessage, bytes: number): void {
  let left = bytes;
  message.on("data", ({ byteLength }: Buffer) => {
    left -= byteLength;
    if (left <= 0) message.pause();
  });
}

/** Sends the body of an answer, whose head is written, as well as a fault lets it. */
export function sendBody(
  response: ServerResponse,
  body: Buffer,
  fault: FaultKind | undefined,
): void {
  if (fault?.kind === "cut answer") {
    response.write(body.subarray(0, fault.afterBytes), () => response.destroy());
  } else if (fault?.kind === "stall answer") {
    response.write(body.subarray(0, fault.afterBytes));
  } else if (fault?.kind === "hold answer") {
    void fault.until.then(() => response.end(body));
  } else if (fault?.kind === "damage answer") {
    const damaged = Buffer.from(body);
    damaged.writeUInt8(damaged.readUInt8(damaged.length - 1) ^ 1, damaged.length - 1);
    response.end(damaged);
  } else response.end(body);
}
