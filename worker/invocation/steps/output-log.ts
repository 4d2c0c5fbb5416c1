/**
 * The output of a tool: nobody's, the end of it in the debug log, or the caller's too.
 */
import type { ToolOutput } from "../../protocol/execution.ts";
import type { CapturedOutput, Execution, ExitReport } from "../../sandbox/sandbox.ts";
import { TextLines } from "../../support/text/text-lines.ts";
import type { CallFollower, OutputStream } from "../../telemetry/call-follower.ts";
import { logEvent } from "../../telemetry/log-event.ts";
import type { Logger } from "../../telemetry/logger.ts";

/** Logged bytes per stream of a call; the report has the end of longer output. */
const maxLoggedBytes = 1024 * 1024;

/**
 * Destinations of the output. `off`: none. `log`: its end is in the debug log. `caller`: also in
 * the answer, and the debug log has each line as it comes. For development.
 */
export const toolLogDestinations = ["off", "log", "caller"] as const;

/** What becomes of the output of tools. */
export interface ToolLogs {
  readonly to: (typeof toolLogDestinations)[number];
  /** Bytes of the end of each stream. */
  readonly maxBytes: number;
}

/** Logs the output of an execution line by line, for workers whose callers get it. */
export function logOutput(
  execution: Pick<Execution, OutputStream>,
  log: Logger,
  { to }: ToolLogs,
): void {
  if (to !== "caller" || !log.isLevelEnabled("debug")) return;
  for (const name of ["stdout", "stderr"] as const) {
    const logged = new LoggedStream(name, log);
    execution[name].on("data", (chunk: Buffer) => logged.write(chunk));
    execution[name].once("end", () => logged.finish());
  }
}

/** Passes the output of an execution on as it comes. */
export function followOutput(
  execution: Pick<Execution, OutputStream>,
  printed: CallFollower["printed"],
): void {
  if (printed === undefined) return;
  for (const name of ["stdout", "stderr"] as const)
    execution[name].on("data", (chunk: Buffer) => printed(name, chunk));
}

/** The end of what a tool printed; undefined where it is kept for nobody. */
export function endOfOutput(
  { stdout, stderr }: Pick<ExitReport, OutputStream>,
  { to, maxBytes }: ToolLogs,
): ToolOutput | undefined {
  if (to === "off") return undefined;
  return { stdout: endOf(stdout, maxBytes), stderr: endOf(stderr, maxBytes) };
}

function endOf({ text, droppedBytes }: CapturedOutput, maxBytes: number): CapturedOutput {
  const bytes = Buffer.from(text);
  let start = Math.max(0, bytes.byteLength - maxBytes);
  // Not inside a character of UTF-8.
  while (((bytes[start] ?? 0) & 0xc0) === 0x80) start++;
  return { text: bytes.toString("utf8", start), droppedBytes: droppedBytes + start };
}

class LoggedStream {
  readonly #stream: OutputStream;
  readonly #log: Logger;
  readonly #lines = new TextLines();
  #bytes = 0;

  constructor(stream: OutputStream, log: Logger) {
    this.#stream = stream;
    this.#log = log;
  }

  write(chunk: Uint8Array): void {
    if (this.#bytes > maxLoggedBytes) return;
    this.#bytes += chunk.byteLength;
    for (const text of this.#lines.take(chunk)) this.#logLine(text);
    if (this.#bytes <= maxLoggedBytes) return;
    const facts = { stream: this.#stream, maxLoggedBytes };
    logEvent(this.#log, "tool.output_limit_reached", facts);
  }

  /** Logs the last line, which has no newline. */
  finish(): void {
    const rest = this.#lines.rest();
    if (rest !== undefined) this.#logLine(rest);
  }

  #logLine(text: string): void {
    logEvent(this.#log, "tool.output", { stream: this.#stream, text });
  }
}
