/**
 * `harness tool run`: one call of a tool in a file, in the sandbox that a worker would make, and
 * nothing around it.
 */
import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { maxTimeoutSeconds } from "../../worker/protocol/limits.ts";
import { workDirNames } from "../../worker/sandbox/work/work-dir.ts";
import type { JsonObject } from "../../worker/support/json/json.ts";
import { exitCodeOf, printResult, statusPrinter, reportCancel } from "../invoke/answer.ts";
import { type CallInputs, readInputs, stageInputs } from "../invoke/call-inputs.ts";
import { OutputView } from "../invoke/output-view.ts";
import { type Context, UsageError, withCauses } from "../context.ts";
import type { ToolCall } from "../messages.ts";
import type { Assignment } from "../options/option-values.ts";
import { findPrograms } from "../prerequisites.ts";
import { printable } from "../invoke/screen.ts";
import { createPassableDirectory } from "../temporary.ts";
import { type DebugFlags, isDebugged, readDebugOptions } from "./debug/debug-options.ts";
import { copyLeftTree } from "./kept-tree.ts";
import { toHostPaths } from "./host-paths.ts";
import type { SandboxObserver } from "./debug/observed-backend.ts";
import { callHere, localCaller as caller } from "./local-call.ts";
import { openToolFoundation, toolName } from "./local-foundation.ts";
import { type LocalInvoker, openLocalInvoker } from "./local-invoker.ts";
import { type Target, findTarget } from "./target.ts";
import { runAtChanges } from "./watch.ts";

/** Names of what a kept work directory lacks that are shown. */
const maxShownNames = 10;

/** The command line, without the target. */
export interface ToolRunOptions extends DebugFlags {
  readonly class?: boolean;
  readonly toolsDir?: string;
  readonly args: JsonObject;
  readonly artifact: readonly Assignment[];
  readonly preload: readonly Assignment[];
  readonly config: JsonObject;
  readonly timeout: number;
  readonly profile: string;
  readonly env: readonly string[];
  readonly watch?: boolean;
  readonly keep?: boolean;
  /** Directory for the artifacts that the tool creates. */
  readonly out?: string;
  readonly json?: boolean;
}

/**
 * Makes the call, shows it as it goes, and tells what became of it. Returns the exit code of
 * `invoke`.
 */
export async function runTool(
  target: string,
  options: ToolRunOptions,
  context: Context,
): Promise<number> {
  const tool = await findTarget({
    target,
    isClass: options.class ?? false,
    ...(options.toolsDir !== undefined && { toolsDir: options.toolsDir }),
  });
  const debug = readDebugOptions(tool, options, context);
  refuseUnset(options.env, context);
  const programs = await findPrograms(context.environment);

  await using stack = new AsyncDisposableStack();
  const home = stack.use(await createPassableDirectory("str-tool-run-"));
  const observer = createObserver(tool, options, context);
  const { profile, env } = options;
  const local = { target: tool, profile, env, programs, home: home.path, debug };
  const foundation = stack.use(await openToolFoundation(local, context));
  const localInvoker = stack.use(openLocalInvoker(foundation, { caller, observer, debug }));
  using _interrupts = options.debug ? context.leaveInterrupts() : undefined;
  const run = (): Promise<number> => runOnce(tool, options, localInvoker, context);
  return await (options.watch ? runAtChanges(tool.toolsDir, run, context) : run());
}

function createObserver(tool: Target, options: ToolRunOptions, context: Context): SandboxObserver {
  const dirs = { pythonDir: tool.toolsDir, nodeDir: tool.toolsDir };
  const output = new OutputView(context.err, (text) => toHostPaths(text, dirs));
  return {
    onOutput: output.take.bind(output),
    onEnd: async ({ path }) => {
      output.finish();
      if (options.keep) await keep(path, context);
    },
  };
}

async function runOnce(
  tool: Target,
  options: ToolRunOptions,
  localInvoker: LocalInvoker,
  context: Context,
): Promise<number> {
  const inputs = await readInputs(options);
  refuseReferences(inputs);
  const staged = await stageInputs(inputs, options.args, localInvoker.artifacts, context.signal);
  const toolCall = { ...staged, ...fixedPart(options) };
  using _reporting = reportCancel(context);
  const end = await callHere(localInvoker, toolCall, statusPrinter(context), context);
  const { answer, cause, executionTimeMs, unenforced } = end;
  printResult(answer, options.json ?? false, context);
  // What agents are not told, and who runs the tool on this host needs.
  for (const line of withCauses(cause)) context.err.line(printable(`because: ${line}`));
  if (answer.kind === "success" && options.out !== undefined) {
    for (const artifact of answer.createdArtifacts) {
      const path = await localInvoker.artifacts.download(artifact, options.out, context.signal);
      context.err.line(`saved ${printable(path)}`);
    }
  }
  tellOfRun(tool, executionTimeMs, options.profile, unenforced, context);
  return exitCodeOf(answer);
}

/** A version that a store has already: here the store is new. */
function refuseReferences({ artifacts }: CallInputs): void {
  for (const [parameter, input] of artifacts) {
    if (input.kind === "reference") {
      throw new UsageError(
        `--artifact ${parameter}: ${input.filename}:${input.version} does not exist; there is no store with versions here`,
      );
    }
  }
}

/** A worker leaves them out without a word; who names one here expects it to be there. */
function refuseUnset(names: readonly string[], { environment }: Context): void {
  const missing = names.find((name) => environment[name] === undefined);
  if (missing !== undefined) throw new UsageError(`--env ${missing}: there is no such variable`);
}

function fixedPart(options: ToolRunOptions): ToolCall {
  return {
    tool: toolName,
    toolConfig: options.config,
    // Nobody counts the time at a debugger's prompt.
    timeoutSeconds: isDebugged(options) ? maxTimeoutSeconds : options.timeout,
    profile: options.profile,
  };
}

function tellOfRun(
  { callable }: Target,
  executionTimeMs: number,
  profile: string,
  unenforced: readonly string[],
  { err }: Context,
): void {
  const lack = unenforced.length > 0 ? `, without ${unenforced.join(" and ")} on this host` : "";
  const text = `${callable.name} took ${executionTimeMs} ms under the profile ${profile}${lack}`;
  err.line(err.paint("dim", printable(text)));
}

/**
 * Copies the work directory to a place of its own, and says where. A failure is told, and changes
 * nothing else.
 */
async function keep(workDir: string, { err }: Context): Promise<void> {
  try {
    const path = await mkdtemp(join(tmpdir(), "str-kept-"));
    const { leftOut } = await copyLeftTree(workDir, path);
    err.line(`kept ${path}`);
    const names = leftOut.filter((name) => name !== workDirNames.status);
    if (names.length === 0) return;
    const others = names.length > maxShownNames ? ` and ${names.length - maxShownNames} more` : "";
    const shown = names.slice(0, maxShownNames).join(", ");
    err.line(printable(`kept without ${shown}${others}: no plain files, or too many`));
  } catch (error) {
    err.line(printable(`error: the work directory could not be kept: ${String(error)}`));
  }
}
