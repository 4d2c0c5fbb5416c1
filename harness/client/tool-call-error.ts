/**
 * Errors of calls of the client library.
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
 * A call without a result. `message` is that of worker or client, without the code. An answer with
 * `timed_out` has the code `SANDBOX_TIMEOUT`, too.
 */
export class ToolCallError extends Error {
  /** A code of the worker, perhaps of a later version, or of the client. */
  readonly code: ErrorCode | ClientErrorCode | (string & {});
  readonly tool: string;
  /** Id of the call in logs; after a second attempt, of that one. */
  readonly correlationId: string;
  /** Further data of the worker: `data` of its error, or `result` of a timeout. */
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
