/**
 * The log of a worker as authors of tools want it: output and statuses of tools at every level, and
 * nothing of the worker's own stack.
 */
import type { JsonObject } from "../../worker/support/json/json.ts";
import type { EventName } from "../../worker/telemetry/events.ts";
import {
  type LogEntry,
  readLogEntry,
  showEntry,
  showProblem,
  showText,
} from "../../worker/telemetry/pretty-log.ts";
import { type Screen, printable } from "../invoke/screen.ts";
import { type ToolsDirs, toHostPaths } from "../tool/host-paths.ts";

/** From the least on, as the worker has them. */
const levels = ["trace", "debug", "info", "warn", "error", "fatal", "silent"];
const defaultLevel = "info";

/** What to show, where. */
export interface DevLogOptions {
  /** The least to be shown of what is no tool's; `info` unless given. */
  readonly level?: string | undefined;
  readonly dirs: ToolsDirs;
  readonly screen: Screen;
  /** Told what a worker says of itself when it serves. */
  readonly onReady?: (facts: JsonObject) => void;
}

/** Events that are shown in a way of their own. */
const ready: EventName = "worker.ready";
const output: EventName = "tool.output";
const status: EventName = "tool.status";
const failureCause: EventName = "call.failure_cause";
/** After it, what a tool prints is shown no more. */
const outputLimit: EventName = "tool.output_limit_reached";

/** Shows a worker's log. */
export class DevLog {
  /**
   * What the worker has to log for us: `LOG_LEVEL`. A level that it does not know is its to refuse.
   */
  readonly workerLevel: string;
  readonly #shownFrom: number;
  readonly #dirs: ToolsDirs;
  readonly #screen: Screen;
  readonly #onReady: (facts: JsonObject) => void;

  constructor({ level = defaultLevel, dirs, screen, onReady = () => undefined }: DevLogOptions) {
    this.#onReady = onReady;
    this.#shownFrom = levels.indexOf(level);
    this.workerLevel = this.#shownFrom > levels.indexOf("debug") ? "debug" : level;
    this.#dirs = dirs;
    this.#screen = screen;
  }

  /** Shows a line. */
  take(line: string): void {
    const entry = readLogEntry(line);
    if (entry?.event === ready) this.#onReady(entry.members);
    if (entry === undefined) showText(line, this.#screen);
    else if (entry.event === output) this.#showOutput(entry);
    else if (entry.event === status) this.#showOutput(entry, "status");
    else if (this.#isShown(entry) || entry.event === outputLimit)
      showEntry(entry, this.#screen, this.#isShown({ level: "debug" }));
    // The line before says that the call failed; these are the tool's own words.
    else if (entry.event === failureCause) showProblem(entry, this.#screen, false);
  }

  #isShown({ level }: Pick<LogEntry, "level">): boolean {
    return levels.indexOf(level) >= this.#shownFrom;
  }

  /** @param stream the entry's unless given */
  #showOutput({ time, members }: LogEntry, stream = textOf(members["stream"])): void {
    const tool = textOf(members["tool"]);
    const text = textOf(members["text"]);
    const shown = stream === "stderr" ? toHostPaths(text, this.#dirs) : text;
    const origin = `${stream} ${tool}:`;
    this.#screen.line(
      `${this.#screen.paint("dim", `${time} ${printable(origin)}`)} ${printable(shown)}`,
    );
  }
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}
