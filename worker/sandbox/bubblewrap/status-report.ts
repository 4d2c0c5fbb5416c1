/**
 * What bubblewrap reports of one sandbox (`--json-status-fd`), and how the sandbox ended by that.
 */
import type { Readable } from "node:stream";
import { isJsonObject, parseJson } from "../../support/json/json.ts";
import { signalOfExitCode } from "../proc/signals.ts";
import type { ExitReport } from "../sandbox.ts";
import type { SubprocessExit } from "../subprocess.ts";

/** Bytes of bubblewrap's status report; it is two short lines. */
const maxReportBytes = 16 * 1024;

/** What was reported so far; see bwrap(1). */
export interface StatusReport {
  /** The sandbox's first process, as the host numbers it. */
  childPid?: number;
  /** The number of a network namespace of its own. */
  networkNamespace?: number;
  /** The command's exit code. */
  exitCode?: number;
}

/**
 * Reads the report into `report`: `started` when it names the first process or ends, `ended` when
 * it says how the command ended, or ends.
 *
 * @param onCommandEnded told at once when the command has ended, and the first process may still be
 *   there
 */
export function readReport(
  stream: Readable,
  report: StatusReport,
  onCommandEnded: () => void,
): { readonly started: Promise<void>; readonly ended: Promise<void> } {
  const [started, ended] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  let readBytes = 0;
  let rest = "";
  stream.on("data", (chunk: Buffer) => {
    readBytes += chunk.byteLength;
    if (readBytes > maxReportBytes) return;
    const lines = (rest + chunk.toString("latin1")).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) readReportLine(line, report);
    if (report.childPid !== undefined) started.resolve();
    if (report.exitCode === undefined) return;
    onCommandEnded();
    // It is the last that is said.
    ended.resolve();
  });
  const finish = (): void => {
    started.resolve();
    ended.resolve();
  };
  stream.once("close", finish);
  // Of a bubblewrap that ended before its options were written, while it was moved into a control
  // group.
  if (stream.closed) finish();
  return { started: started.promise, ended: ended.promise };
}

function readReportLine(line: string, report: StatusReport): void {
  const value = parsed(line);
  if (!isJsonObject(value)) return;
  // Of a template's child, what comes behind the first line was written where the tool's module was
  // loaded.
  if (typeof value["child-pid"] === "number") report.childPid ??= value["child-pid"];
  if (typeof value["net-namespace"] === "number") report.networkNamespace = value["net-namespace"];
  if (typeof value["exit-code"] === "number") report.exitCode = value["exit-code"];
}

/** A template's child writes its report where the tool's module was loaded. */
function parsed(line: string): unknown {
  try {
    return parseJson(Buffer.from(line));
  } catch {
    return undefined;
  }
}

/** bubblewrap reports an exit code only for a command that it started. */
export function ending(
  report: StatusReport,
  exit: SubprocessExit,
): Pick<ExitReport, "started" | "exitCode" | "signal"> {
  if (report.exitCode === undefined) {
    // Killed from outside, or failed on the way to the command.
    const wasKilled = exit.signal !== undefined && report.childPid !== undefined;
    return { started: wasKilled, exitCode: undefined, signal: exit.signal };
  }
  const signal = signalOfExitCode(report.exitCode);
  if (signal !== undefined) return { started: true, exitCode: undefined, signal };
  return { started: true, exitCode: report.exitCode, signal: undefined };
}
