/**
 * What is kept of the calls of an execution: no arguments and no results.
 */

/** A call that the code made. */
export interface ToolCallRecord {
  readonly toolId: string;
  /**
   * The gateway's `backendKind`, which is `function` for functions. Undefined for a gateway that
   * does not tell, and for a call that failed: it may have reached no backend.
   */
  readonly backendKind: string | undefined;
  readonly durationMs: number;
  /** The part of the call that failed; undefined for one that succeeded. */
  readonly errorOp: string | undefined;
}
