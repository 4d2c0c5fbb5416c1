/**
 * What is kept of the calls of an execution: no arguments and no results.
 */

/** A call that the code made. */
export interface ToolCallRecord {
  readonly toolId: string;
  /** The kind of backend that ran the tool; undefined where none is known, as for functions. */
  readonly backendKind: string | undefined;
  readonly durationMs: number;
  /** The part of the call that failed; undefined for one that succeeded. */
  readonly errorOp: string | undefined;
}
