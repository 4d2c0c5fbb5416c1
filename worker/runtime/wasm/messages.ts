/**
 * What a backend and its threads tell each other.
 */

/** A compiled engine whose memory cannot grow beyond the bound; threads share its code. */
export interface Engine {
  /** A `WebAssembly.Module`. */
  readonly module: object;
  readonly memoryBytes: number;
}

/** What a thread starts with. */
export interface ThreadData {
  readonly engine: Engine;
  /** Of {@link outputSize} bytes. */
  readonly output: SharedArrayBuffer;
}

/** A program for a thread. */
export interface Program {
  readonly code: string;
  readonly language: string;
}

/** What a thread gets. */
export type ThreadCommand =
  | { readonly type: "run"; readonly program: Program; readonly engine: Engine }
  /** A line of tool-runner/PROTOCOL.md, "Tools of a program". */
  | { readonly type: "answer"; readonly id: string; readonly line: Uint8Array };

/** Where a program failed: lines and columns from 1. */
export interface FailurePlace {
  readonly line: number;
  readonly column: number;
  /** The program's own lines, innermost first. */
  readonly stack?: readonly string[];
}

/** What a program came to. */
export type Outcome =
  | { readonly kind: "value"; readonly json: string }
  | { readonly kind: "failed"; readonly message: string; readonly place?: FailurePlace }
  | {
      readonly kind: "limit";
      readonly limit: "memory" | "cpu" | "value_bytes";
      readonly message: string;
    };

/** What a thread says. */
export type ThreadReport =
  /** An instance waits for a program. */
  | { readonly type: "ready" }
  /** A request of the same protocol; without a payload, that one is too large. */
  | {
      readonly type: "request";
      readonly id: string;
      readonly request: string;
      readonly payload: string | undefined;
    }
  | { readonly type: "end"; readonly outcome: Outcome; readonly isReusable: boolean };
