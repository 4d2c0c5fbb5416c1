/**
 * What a tool prints as lines of the debug log, while it runs.
 */
import type { Execution, OutputListener } from "../../sandbox/sandbox.ts";
import { TextLines } from "../../support/text/text-lines.ts";
import { logEvent } from "../../telemetry/log-event.ts";
import type { Logger } from "../../telemetry/logger.ts";

/**
 * Bytes of each stream of a call that are logged while it runs; the report has the end of what is
 * more.
 */
const maxLoggedBytes = 1024 * 1024;

type StreamName = Parameters<OutputListener>[0];

/**
 * Logs the output of an execution, if the level is debug. `finish` logs what has no newline after
 * it.
 */
export function logOutput(execution: Pick<Execution, "onOutput">, log: Logger): { finish(): void } {
  if (!log.isLevelEnabled("debug")) return { finish() {} };
  const streams = {
    stdout: new LoggedStream("stdout", log),
    stderr: new LoggedStream("stderr", log),
  };
  execution.onOutput((stream, chunk) => streams[stream].take(chunk));
  return {
    finish() {
      streams.stdout.finish();
      streams.stderr.finish();
    },
  };
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

  take(chunk: Uint8Array): void {
    if (this.#bytes > maxLoggedBytes) return;
    this.#bytes += chunk.byteLength;
    for (const text of this.#lines.take(chunk)) this.#say(text);
    if (this.#bytes <= maxLoggedBytes) return;
    const facts = { stream: this.#stream, maxLoggedBytes };
    logEvent(this.#log, "tool.output_limit_reached", facts);
  }

  finish(): void {
    const rest = this.#lines.rest();
    if (rest !== undefined) this.#say(rest);
  }

  #say(text: string): void {
    logEvent(this.#log, "tool.output", { stream: this.#stream, text });
  }
}
