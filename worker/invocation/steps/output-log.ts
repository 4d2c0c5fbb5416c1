/**
 * Streams the output of a running tool to the debug log.
 */
import type { Execution } from "../../sandbox/sandbox.ts";
import { TextLines } from "../../support/text/text-lines.ts";
import { logEvent } from "../../telemetry/log-event.ts";
import type { Logger } from "../../telemetry/logger.ts";

/** Logged bytes per stream of a call; the report has the end of longer output. */
const maxLoggedBytes = 1024 * 1024;

type StreamName = "stdout" | "stderr";

/** Logs the output of an execution at level debug. */
export function logOutput(execution: Pick<Execution, StreamName>, log: Logger): void {
  if (!log.isLevelEnabled("debug")) return;
  for (const name of ["stdout", "stderr"] as const) {
    const logged = new LoggedStream(name, log);
    execution[name].on("data", (chunk: Buffer) => logged.write(chunk));
    execution[name].once("end", () => logged.finish());
  }
}

class LoggedStream {
  readonly #stream: StreamName;
  readonly #log: Logger;
  readonly #lines = new TextLines();
  #bytes = 0;

  constructor(stream: StreamName, log: Logger) {
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
