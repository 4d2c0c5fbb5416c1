/**
 * The calls that a tool made, as `execution.tool_calls` of its answer has them.
 */
import type { ToolCallRecord } from "../gateway/call-records.ts";
import type { GatewayReport, ToolCallReport } from "../protocol/execution.ts";

/** Calls of one report; further ones are counted. */
export const maxReportedCalls = 1_000;

/** The calls of one tool, for its report. */
export class ReportedCalls {
  readonly #openedMs: number;
  readonly #calls: ToolCallReport[] = [];
  #omitted = 0;

  /** @param openedMs epoch milliseconds */
  constructor(openedMs: number) {
    this.#openedMs = openedMs;
  }

  add(record: ToolCallRecord): void {
    if (this.#calls.length >= maxReportedCalls) return void this.#omitted++;
    const { callId: id, toolId: tool, backend, durationMs, outcome, op, depth } = record;
    const startMs = record.startedAtMs - this.#openedMs;
    const bytes = record.resultBytes;
    this.#calls.push({ id, tool, backend, startMs, durationMs, outcome, op, depth, bytes });
  }

  get report(): Pick<GatewayReport, "calls" | "omittedCalls"> {
    return { calls: [...this.#calls], omittedCalls: this.#omitted };
  }
}
