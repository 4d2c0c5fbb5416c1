/**
 * Programs: a call of an entry for code brings what to run.
 */
import { hash } from "node:crypto";
import type { ToolEntry } from "../../manifest/manifest.ts";
import { entryFor } from "../../manifest/programs.ts";
import { InvocationError } from "../../protocol/errors.ts";
import type { Invocation } from "../../protocol/invocation.ts";
import { isProgramResult } from "../../protocol/tool-calls/program.ts";
import { maxCodeBytes } from "../../protocol/tool-calls/program-limits.ts";
import type { JsonObject } from "../../support/json/json.ts";
import type { Logger } from "../../telemetry/logger.ts";
import { logEvent } from "../../telemetry/log-event.ts";

/** A program to run. */
export interface Program {
  readonly language: string;
  readonly code: string;
  /** Whether its caller wants its output as statuses. */
  readonly isStreamed: boolean;
}

/** A call of a program. */
export interface ProgramCall {
  /** What runs the program's language. */
  readonly tool: ToolEntry;
  /** With the language among its arguments, and without a configuration. */
  readonly invocation: Invocation;
  readonly program: Program;
}

/**
 * The program of a call with checked arguments; undefined for a tool with code of its own. Throws
 * InvocationError `INVALID_REQUEST`.
 */
export function programOf(tool: ToolEntry, invocation: Invocation): ProgramCall | undefined {
  const { languages } = tool;
  if (languages === undefined) return undefined;
  const { args } = invocation;
  const { code, stream } = args;
  if (typeof code !== "string" || Buffer.byteLength(code) > maxCodeBytes)
    throw invalid("code", `expected text of at most ${maxCodeBytes} bytes`);
  const named = args["language"] ?? (languages.length === 1 ? languages[0] : undefined);
  const language = languages.find((each) => each === named);
  if (language === undefined) throw invalid("language", `expected one of ${languages.join(", ")}`);
  return {
    tool: entryFor(tool, language),
    // A program is its caller's own code: it sees no secret.
    invocation: { ...invocation, args: { ...args, language }, toolConfig: {} },
    program: { language, code, isStreamed: stream === true },
  };
}

/**
 * A program can write its result in place of the runner: then it is still one. Throws
 * InvocationError `EXECUTION_ERROR`.
 */
export function requireProgramResult(
  { languages }: Pick<ToolEntry, "languages">,
  value: JsonObject,
): void {
  if (languages === undefined || isProgramResult(value)) return;
  const message = "The program's result is not value, stdout, stderr and displays";
  throw new InvocationError("EXECUTION_ERROR", message, { op: "validate_output" });
}

/** Logs which program runs, and not its source. */
export function logProgram(program: Program | undefined, log: Logger): void {
  // Its digest is for the log alone.
  if (program === undefined || !log.isLevelEnabled("info")) return;
  const { language, code } = program;
  const sha256 = hash("sha256", code);
  logEvent(log, "program.received", { language, sha256, bytes: Buffer.byteLength(code) });
}

function invalid(argument: string, expected: string): InvocationError {
  return new InvocationError(
    "INVALID_REQUEST",
    `Invalid request: params.args.${argument}: ${expected}`,
  );
}
