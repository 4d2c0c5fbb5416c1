/**
 * How a call fails for a caller of the library.
 */
import type { JsonObject } from "../../worker/support/json/json.ts";
import type { ErrorCode } from "../../worker/protocol/errors.ts";

/**
 * Codes that no worker sends:
 *
 * | code               | meaning                                                                                      |
 * |--------------------|----------------------------------------------------------------------------------------------|
 * | `NO_ANSWER`        | nobody answered within the tool's time and ten seconds; whether the tool ran is not known      |
 * | `UNROUTABLE`       | the broker has nobody to give the call to, also a second later; the tool did not run           |
 * | `INVALID_RESPONSE` | the answer is none that agents accept                                                         |
 */
export type ClientErrorCode = "NO_ANSWER" | "UNROUTABLE" | "INVALID_RESPONSE";

/**
 * A call without a result. `message` is what the worker says, or the client, without its code.
 *
 * `SANDBOX_TIMEOUT` is also the code of an answer that says so in the other of the two ways that
 * there are, `timed_out`.
 */
export class ToolCallError extends Error {
  /** One that a worker sends, of a later version perhaps, or one of the client's own. */
  readonly code: ErrorCode | ClientErrorCode | (string & {});
  readonly tool: string;
  /** The id of the call in logs; of the second attempt when there were two. */
  readonly correlationId: string;
  /**
   * What the worker tells beside the message: `data` of its error, or the whole `result` of a tool
   * that timed out.
   */
  readonly data: JsonObject | undefined;

  constructor(
    code: ToolCallError["code"],
    message: string,
    facts: Pick<ToolCallError, "tool" | "correlationId" | "data">,
  ) {
    super(message);
    this.name = "ToolCallError";
    this.code = code;
    this.tool = facts.tool;
    this.correlationId = facts.correlationId;
    this.data = facts.data;
  }
}
