/**
 * The result of a finished tool from `result.json`, or the reason of its failure.
 */
import { z } from "zod";
import { type ErrorCode, InvocationError } from "../../protocol/errors.ts";
import { maxMessageBytes } from "../../protocol/limits.ts";
import {
  type LimitName,
  type LimitReached,
  type Limits,
  limitFacts,
  limitNames,
} from "../../protocol/resource-limits.ts";
import type { ProgramFailure } from "../../protocol/tool-calls/program.ts";
import type { CapturedOutput, ExitReport } from "../../sandbox/sandbox.ts";
import { type LeftFile, type WorkDir, workDirNames } from "../../sandbox/work/work-dir.ts";
import { decodeJson } from "../../support/json/json-decoder.ts";
import { JsonError, type JsonObject, isJsonObject } from "../../support/json/json.ts";

/** Characters of a failing tool's stderr that go into the error. */
export const maxStderrLength = 500;
/** Characters of the runner's own error text. */
export const maxErrorLength = 4_000;

/** The runner's note on a file in `output/`. */
export interface OutputNote {
  readonly mimeType: string | undefined;
  readonly description: string | undefined;
}

/** The runner's notes by file name. */
export interface OutputNotes {
  get(name: string): OutputNote | undefined;
}

/** A tool's result. */
export interface ToolResult {
  readonly value: JsonObject;
  readonly outputs: OutputNotes;
}

/** Codes that the runner may report; every other one becomes `TOOL_ERROR`. */
const runnerCodes: ReadonlySet<string> = new Set<ErrorCode>([
  "EXECUTION_ERROR",
  "IMPORT_ERROR",
  "TOOL_NOT_FOUND",
  "TOOL_ERROR",
  "RESOURCE_EXHAUSTED",
]);

/** `type/subtype` with parameters (RFC 9110 §8.3.1), since stores keep it in headers. */
const mimeType = /^[\w.+!#$&^-]+\/[\w.+!#$&^-]+(?: ?; ?[\w.-]+=[\w.-]+)*$/;

const outputNote = z.object({
  mime_type: z.string().max(255).regex(mimeType).nullish().catch(undefined),
  description: z.string().max(2_000).nullish().catch(undefined),
});

/** Lines of a program's stack, and characters of each. */
const maxStackLines = 20;
const maxStackLine = 300;

const position = z.number().int().min(1).optional().catch(undefined);

const programFailure: z.ZodType<ProgramFailure> = z.object({
  line: position,
  column: position,
  stack: z
    .array(z.string().transform((line) => line.slice(0, maxStackLine).toWellFormed()))
    .transform((lines) => lines.slice(0, maxStackLines))
    .optional()
    .catch(undefined),
});

/** Options of the error of a result that is no answer. */
const invalidResult = { op: "validate_output" } as const;

/** Error message by the limit that ended the call. */
const messages: Readonly<Record<LimitName, string>> = {
  memoryBytes: "Tool needs more memory than its sandbox may use",
  cpuSeconds: "Tool needs more processor time than its sandbox may use",
  cpus: "Tool needs more processors than its sandbox may use",
  processes: "Tool needs more processes than its sandbox may have",
  openFiles: "Tool needs more open files than its sandbox may have",
  fileSizeBytes: "Tool writes a larger file than its sandbox may hold",
  tmpBytes: "Tool needs more temporary space than its sandbox has",
  diskBytes: "Tool needs more disk than its sandbox may use",
  files: "Tool makes more files than its sandbox may hold",
  statusBytes: "Tool writes more statuses than its sandbox may",
};

/**
 * Throws InvocationError: `EXECUTION_ERROR` at a limit; `SANDBOX_FAILED` for an exit code or a
 * signal; the runner's code; `INTERNAL_ERROR` for a missing or invalid result;
 * `RESOURCE_EXHAUSTED` for one beyond `maxMessageBytes`.
 */
export async function readResult(
  workDir: WorkDir,
  report: ExitReport,
  limits: Limits,
  signal: AbortSignal,
): Promise<ToolResult> {
  // A result written before the kill counts.
  if (report.exceeded !== undefined && report.exitCode !== 0) {
    const { exceeded: limit } = report;
    throw new InvocationError("EXECUTION_ERROR", messages[limit.limit], { limit });
  }
  if (!report.started) {
    const cause = new Error(report.stderr.text.trim());
    throw new InvocationError("SANDBOX_FAILED", "The sandbox could not be started", { cause });
  }
  if (report.exitCode !== 0) throw failed(report);
  const document = await readDocument(workDir, report, signal);
  if (!isJsonObject(document)) {
    const message = "The tool's result is not a JSON object";
    throw new InvocationError("INTERNAL_ERROR", message, invalidResult);
  }
  const { error, error_code: code, error_limit: limit, error_data: data } = document;
  const { result, outputs } = document;
  // Runners of other generations write an empty error beside a result.
  if (typeof error === "string" && error !== "")
    throw reported(error, code, { limit: metLimit(limit, limits), program: failureIn(data) });
  if (!isJsonObject(result)) {
    throw new InvocationError(
      "INTERNAL_ERROR",
      "The tool's result holds neither a result object nor an error",
      invalidResult,
    );
  }
  return { value: result, outputs: new NotesOnDemand(outputs) };
}

function failed(report: ExitReport): InvocationError {
  const ending =
    report.signal === undefined
      ? `exited with code ${report.exitCode}`
      : `was ended by ${report.signal}`;
  const stderr = tail(report.stderr);
  const message = `The tool's process ${ending}${stderr === "" ? "" : `: ${stderr}`}`;
  return new InvocationError("SANDBOX_FAILED", message, { isToolsText: true });
}

function reported(
  error: string,
  code: unknown,
  facts: Pick<InvocationError, "limit" | "program">,
): InvocationError {
  const known =
    typeof code === "string" && runnerCodes.has(code) ? (code as ErrorCode) : "TOOL_ERROR";
  const text = error.slice(0, maxErrorLength).toWellFormed();
  return new InvocationError(known, text, { isToolsText: true, ...facts });
}

/** The usable parts of where a program failed. */
function failureIn(data: unknown): ProgramFailure | undefined {
  const parsed = programFailure.safeParse(data);
  return parsed.success ? parsed.data : undefined;
}

/** The limit that the runner reports, without a measured peak. */
function metLimit(word: unknown, limits: Limits): LimitReached | undefined {
  const limit = limitNames.find((name) => limitFacts[name].word === word);
  return limit && { limit, bound: limits[limit], peak: undefined };
}

async function readDocument(
  workDir: WorkDir,
  { result }: ExitReport,
  signal: AbortSignal,
): Promise<unknown> {
  if (result !== undefined) return await decodeDocument(result, signal);
  const file = await workDir.openLeft(workDirNames.result);
  if (file === undefined) {
    throw new InvocationError("INTERNAL_ERROR", "The tool ended without a result", invalidResult);
  }
  await using _handle = file.handle;
  if (file.sizeBytes > maxMessageBytes) {
    throw new InvocationError(
      "RESOURCE_EXHAUSTED",
      `The tool's result has ${file.sizeBytes} bytes; at most ${maxMessageBytes} can be returned. Return large data as an artifact.`,
      invalidResult,
    );
  }
  return await decodeDocument(await contentOf(file), signal);
}

async function decodeDocument(content: Uint8Array, signal: AbortSignal): Promise<unknown> {
  try {
    return await decodeJson(content, signal);
  } catch (error) {
    if (!(error instanceof JsonError)) throw error;
    throw new InvocationError(
      "INTERNAL_ERROR",
      `The tool's result cannot be read: ${error.message}`,
      { cause: error, ...invalidResult },
    );
  }
}

/** Reads the measured size only: a process with a descriptor can make the file grow. */
async function contentOf({ handle, sizeBytes }: LeftFile): Promise<Uint8Array> {
  const content = Buffer.alloc(sizeBytes);
  let filled = 0;
  while (filled < sizeBytes) {
    const { bytesRead } = await handle.read(content, filled, sizeBytes - filled, filled);
    if (bytesRead === 0) break;
    filled += bytesRead;
  }
  return content.subarray(0, filled);
}

/** Checks a note on demand: a result can hold far more notes than a call has files. */
class NotesOnDemand implements OutputNotes {
  readonly #notes: JsonObject;

  constructor(outputs: unknown) {
    this.#notes = isJsonObject(outputs) ? outputs : {};
  }

  get(name: string): OutputNote | undefined {
    // Own properties only: the tool chooses the names.
    const parsed = outputNote.safeParse(Object.hasOwn(this.#notes, name) && this.#notes[name]);
    if (!parsed.success) return undefined;
    const { mime_type: type, description } = parsed.data;
    return { mimeType: type ?? undefined, description: description ?? undefined };
  }
}

/** The end of the output, which usually has the reason, without directories. */
function tail(output: CapturedOutput): string {
  const text = withoutDirectories(output.text.trim());
  return (text.length > maxStderrLength ? `…${text.slice(-maxStderrLength)}` : text).toWellFormed();
}

/** Shortens absolute paths to their last part: `/opt/venv/lib/site.py` becomes `site.py`. */
export function withoutDirectories(text: string): string {
  return text.replace(/(?<![\w.])(?:\/[\w.@+~-]+)+\/([\w.@+~-]+)/g, "$1");
}
