/**
 * The calls of a program as a tree: what the log has of them while they run, and the answer's
 * report, which has refused ones, too.
 */
import type { Json } from "../../../worker/support/json/json.ts";
import type { LogEntry } from "../../../worker/telemetry/pretty-log.ts";
import { type ReportedCall, toolCallsOf } from "../../invoke/execution-facts.ts";

/** A call that the log has. */
interface HeardCall {
  readonly id: string;
  readonly tool: string;
  readonly parentId: string;
  readonly startMs: number;
  durationMs: number;
  outcome: string;
}

/** Columns before the tools. */
const widths = { start: 7, duration: 8, outcome: 14 };

const titles = { startMs: "at ms", durationMs: "took ms", outcome: "outcome", tool: "tool" };

/** Hears the log of one call at a time. */
export class CallTree {
  readonly #idOf: (name: string) => string;
  readonly #nowMs: () => number;
  readonly #heard = new Map<string, HeardCall>();

  /** @param idOf the id of a tool by its name in the manifest */
  constructor(idOf: (name: string) => string, nowMs: () => number) {
    this.#idOf = idOf;
    this.#nowMs = nowMs;
  }

  hear({ event, members }: LogEntry): void {
    const id = textOf(members["id"]);
    if (event === "tool_call.received") {
      const [tool, parentId] = [textOf(members["tool"]), textOf(members["parentId"])];
      const call = { id, tool, parentId, startMs: this.#nowMs() };
      this.#heard.set(id, { ...call, durationMs: 0, outcome: "not ended" });
    } else if (event === "tool_call.ended") {
      const call = this.#heard.get(id);
      if (call === undefined) return;
      call.durationMs = Number(members["durationMs"]);
      call.outcome = textOf(members["outcome"]);
    }
  }

  /** Lines for people, with milliseconds since the program began; none for one without calls. */
  lines(answer: unknown): readonly string[] {
    const { calls, omitted } = toolCallsOf(answer);
    if (calls.length === 0) return [];
    const sorted = calls.toSorted((one, other) => one.startMs - other.startMs);
    const lines = sorted.flatMap((call) => {
      const heardMs = this.#heard.get(call.id)?.startMs ?? 0;
      return [lineOf(call, 0), ...this.#below(call.id, heardMs - call.startMs, 1)];
    });
    return [lineOf(titles, 0), ...lines, ...(omitted > 0 ? [`${omitted} more`] : [])];
  }

  /** @param beganMs when the program began, by the clock of what was heard */
  #below(parentId: string, beganMs: number, depth: number): readonly string[] {
    const calls = [...this.#heard.values()].filter((call) => call.parentId === parentId);
    return calls.flatMap((call) => {
      const startMs = Math.round(call.startMs - beganMs);
      const own = lineOf({ ...call, startMs, tool: this.#idOf(call.tool) }, depth);
      return [own, ...this.#below(call.id, beganMs, depth + 1)];
    });
  }
}

function textOf(member: Json | undefined): string {
  return typeof member === "string" ? member : "";
}

type Cells = Record<keyof Omit<ReportedCall, "id">, string | number>;

function lineOf({ tool, startMs, durationMs, outcome }: Cells, depth: number): string {
  const start = String(startMs).padStart(widths.start);
  const duration = String(durationMs).padStart(widths.duration);
  return `${start} ${duration}  ${String(outcome).padEnd(widths.outcome)} ${"  ".repeat(depth)}${tool}`;
}
