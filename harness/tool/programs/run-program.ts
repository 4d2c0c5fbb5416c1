/**
 * `harness program run`: one run of a program in its sandbox, with the tools of a manifest and
 * without a broker.
 */
import { toolIdOf } from "../../../worker/manifest/manifest.ts";
import type { JsonObject } from "../../../worker/support/json/json.ts";
import { CommandError, type Context, withCauses } from "../../context.ts";
import { exitCodeOf, printResult, reportCancel, statusPrinter } from "../../invoke/answer.ts";
import { printRefusals, programFailureOf } from "../../invoke/execution-facts.ts";
import { OutputView } from "../../invoke/output-view.ts";
import { printable } from "../../invoke/screen.ts";
import type { Answer } from "../../messages.ts";
import { findPrograms } from "../../prerequisites.ts";
import { createPassableDirectory } from "../../temporary.ts";
import { toHostPaths } from "../host-paths.ts";
import { callHere, localCaller as caller } from "../local-call.ts";
import { openManifestFoundation } from "../local-foundation.ts";
import { openLocalInvoker } from "../local-invoker.ts";
import { CallTree } from "./call-tree.ts";
import { type ProgramEntryFlags, programEntry } from "./program-entry.ts";
import { type ProgramFile, readProgramFile } from "./program-file.ts";

/** The command line, without the file. */
export interface RunProgramOptions extends ProgramEntryFlags {
  readonly inputs: JsonObject;
  readonly timeout: number;
  readonly json?: boolean;
}

/** Runs it, shows it as it goes, and tells what became of it. Returns the exit code of `invoke`. */
export async function runProgram(
  path: string,
  options: RunProgramOptions,
  context: Context,
): Promise<number> {
  const { clock, err } = context;
  const file = await readProgramFile(path);
  const { language, code } = file;
  await using home = await createPassableDirectory("str-program-run-");
  const { layout, name } = await programEntry(language, options, home.path, context);
  const programs = await findPrograms(context.environment);
  const idOf = (tool: string): string => {
    const entry = opened.foundation.catalog.resolve(tool);
    return entry === undefined ? tool : toolIdOf(entry);
  };
  const tree = new CallTree(idOf, () => clock.monotonicMs());
  const onLog = tree.hear.bind(tree);
  await using opened = await openManifestFoundation(
    { layout, programs, home: home.path, onLog },
    context,
  );
  const { catalog } = opened.foundation;
  if (catalog.resolve(name) === undefined) {
    const { reason = "it is not there" } = catalog.unavailable(name) ?? {};
    throw new CommandError(`${name} cannot be served: ${reason}`);
  }
  const output = new OutputView(err, (text) => toHostPaths(text, layout));
  const observer = { onOutput: output.take.bind(output), onEnd: async () => output.finish() };
  await using localInvoker = openLocalInvoker(opened, { caller, observer });
  using _reporting = reportCancel(context);
  const call = {
    tool: name,
    args: { code, language, inputs: options.inputs },
    timeoutSeconds: options.timeout,
  };
  const end = await callHere(localInvoker, call, statusPrinter(context), context);
  show(file, end.answer, options.json ?? false, context);
  for (const line of withCauses(end.cause)) err.line(printable(`because: ${line}`));
  for (const line of tree.lines(end.answer.response)) err.line(printable(line));
  err.line(err.paint("dim", printable(`${file.path} took ${end.executionTimeMs} ms as ${name}`)));
  return exitCodeOf(end.answer);
}

/** The value goes to standard output, everything else to standard error. */
function show({ path }: ProgramFile, answer: Answer, isJson: boolean, context: Context): void {
  const { out, err } = context;
  if (isJson || answer.kind !== "success") printResult(answer, isJson, context);
  else {
    // What a worker makes of a program's end always has these members.
    const { value, displays } = answer.toolResult;
    for (const display of Array.isArray(displays) ? displays : [])
      err.line(printable(`display: ${JSON.stringify(display)}`));
    out.line(printable(JSON.stringify(value ?? null, undefined, 2)));
  }
  printRefusals(answer, context);
  const { line, column, stack = [] } = programFailureOf(answer.response) ?? {};
  if (line === undefined) return;
  err.line(printable(`at ${[path, line, ...(column === undefined ? [] : [column])].join(":")}`));
  for (const each of stack) err.line(printable(`  ${each}`));
}
