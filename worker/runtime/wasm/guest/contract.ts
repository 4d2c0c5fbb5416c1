/**
 * What the two sides of an instance are to each other: the host, and the guest inside.
 */

export type Payload = Record<string, unknown>;

/** What the instance's host does. */
export interface GuestHost {
  write(stream: "stdout" | "stderr", text: string): void;
  /** Sends a request; its answer comes by {@link Guest.answer}. */
  request(id: number, type: string, payload: string): void;
  startTimer(id: number, delayMs: number): void;
  stopTimer(id: number): void;
}

/** What the host calls. */
export interface Guest {
  /** A line of the gateway's protocol. */
  answer(id: number, line: string): void;
  fire(timerId: number): void;
  /** JSON text of a value; throws TypeError for what is no JSON. */
  encode(value: unknown, maxDepth: number): string;
  /** JSON text of a {@link Thrown}. */
  describe(thrown: unknown): string;
}

/** A thrown value, as the program's side says it. */
export interface Thrown {
  readonly text: string;
  readonly stack: string;
  /** Whether the engine has thrown it for want of memory, and no program by the same words. */
  readonly isOutOfMemory: boolean;
}

/** Bounds that the guest keeps and its host checks. */
export interface GuestBounds {
  readonly maxRequestsAtOnce: number;
  readonly maxTimers: number;
  readonly maxArgsDepth: number;
}

/** What programs call tools by. */
export interface GuestTools {
  readonly tools: object;
  readonly ToolCallError: new (code: string, text: string, details?: Payload) => Error;
  readonly answer: Guest["answer"];
}
