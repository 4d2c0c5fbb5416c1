/**
 * Prints the outcome of a call: the result to standard output, the rest to standard error.
 */
import { type Context, exit } from "../context.ts";
import type { Answer } from "../messages.ts";
import type {
  LogLine,
  Progress,
  StatusListener,
} from "../../worker/protocol/messages/status-details.ts";
import { printable } from "./screen.ts";

/** An answer, or its absence, which the caller explains. */
export type CallOutcome = Answer | { readonly kind: "no-answer" };

/** Prints each status of a call: log lines with their level, progress with its percentage. */
export function statusPrinter({ err }: Context): StatusListener {
  return (text, { progress, log } = {}) => {
    if (log) {
      const style = logStyles[log.level];
      err.line(`${err.paint(style, `${log.level}:`)} ${printable(logText(log))}`);
      return;
    }
    err.line(`${err.paint("dim", "status:")} ${printable(text)}${percentage(progress)}`);
  };
}

const logStyles = { debug: "dim", info: "dim", warning: "yellow", error: "red" } as const;

function logText({ text, fields = {} }: LogLine): string {
  const pairs = Object.entries(fields).map(([name, value]) => ` ${name}=${JSON.stringify(value)}`);
  return `${text}${pairs.join("")}`;
}

function percentage({ done, total }: Partial<Progress> = {}): string {
  if (done === undefined || total === undefined || done > total || total === 0) return "";
  return ` ${Math.floor((100 * done) / total)} %`;
}

/** Prints the outcome of a call; with `json` the response goes to standard output in any case. */
export function printResult(result: CallOutcome, json: boolean, { out, err }: Context): void {
  if (json && result.kind !== "no-answer" && result.response) {
    out.line(printable(JSON.stringify(result.response)));
  }
  switch (result.kind) {
    case "success":
      if (!json) out.line(printable(JSON.stringify(result.toolResult, undefined, 2)));
      for (const { filename, version, mimeType, sizeBytes } of result.createdArtifacts) {
        const facts = `version ${version}, ${mimeType}, ${sizeBytes} bytes`;
        err.line(printable(`artifact ${filename}: ${facts}`));
      }
      break;
    case "error":
      err.line(printable(`${result.code}: ${result.message}`));
      break;
    case "timed-out":
      err.line(printable(`SANDBOX_TIMEOUT: ${result.message}`));
      break;
    case "unusable":
      err.line(printable(`INVALID_RESPONSE: Agents refuse this answer: ${result.problem}`));
      break;
    case "no-answer":
      break;
  }
}

/** Exit code of a command after its call. */
export function exitCodeOf(result: CallOutcome): number {
  switch (result.kind) {
    case "success":
      return exit.success;
    case "error":
    case "unusable":
      return exit.failure;
    case "timed-out":
    case "no-answer":
      return exit.timedOut;
  }
}

/** Says so when Ctrl-C cancels the call, until its disposal. */
export function reportCancel({ signal, err }: Pick<Context, "signal" | "err">): Disposable {
  const onAbort = (): void =>
    err.line(err.paint("dim", "cancelling the call; Ctrl-C again leaves at once"));
  signal.addEventListener("abort", onAbort, { once: true });
  return { [Symbol.dispose]: () => signal.removeEventListener("abort", onAbort) };
}
