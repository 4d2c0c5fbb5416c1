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
import type { EndedConnection } from "../../worker/sandbox/network/sockets.ts";
import { wireDescriptions } from "../../worker/wiring/discovery.ts";
import { exitCodeOf, printResult, reportCancel, statusPrinter } from "../invoke/answer.ts";
import { type CallInputs, readInputs, stageInputs } from "../invoke/call-inputs.ts";
import { OutputView } from "../invoke/output-view.ts";
import { type Context, UsageError, withCauses } from "../context.ts";
import type { Answer, ToolCall } from "../messages.ts";
import type { Assignment } from "../options/option-values.ts";
import { printRefusals } from "../invoke/execution-facts.ts";
import { printable } from "../invoke/screen.ts";
import { learningNetwork, reportLearned } from "../network/learn.ts";
import { createPassableDirectory } from "../temporary.ts";
import { type DebugFlags, isDebugged, readDebugOptions } from "./debug/debug-options.ts";
import { copyLeftTree } from "./kept-tree.ts";
import { toHostPaths } from "./host-paths.ts";
import type { SandboxObserver } from "./debug/observed-backend.ts";
import { callHere, localCaller as caller } from "./local-call.ts";
import type { LocalFoundation } from "./local-foundation.ts";
import { type LocalInvoker, openLocalInvoker } from "./local-invoker.ts";
import {
  type TargetFlags,
  dirsOf,
  listed,
  openTarget,
  readTarget,
  servedNames,
} from "./target/open.ts";
import { type CodeTarget, type Target, servedName } from "./target/target.ts";
import { runAtChanges } from "./watch.ts";

/** Names of what a kept work directory lacks that are shown. */
const maxShownNames = 10;

/** The command line, without the target. */
export interface ToolRunOptions extends DebugFlags, TargetFlags {
  readonly args: JsonObject;
  readonly artifact: readonly Assignment[];
  readonly preload: readonly Assignment[];
  readonly config: JsonObject;
  readonly timeout: number;
  readonly watch?: boolean;
  readonly keep?: boolean;
  /** Directory for the artifacts that the tool creates. */
  readonly out?: string;
  readonly json?: boolean;
  /** Reaches every public host, and says which of them a list would have to name. */
  readonly network?: "learn";
}

/** What is called. */
interface Called {
  readonly target: Target;
  /** By which it is served here. */
  readonly name: string;
  readonly profile: string;
}

/**
 * Makes the call, shows it as it goes, and tells what became of it. Returns the exit code of
 * `invoke`.
 */
export async function runTool(
  name: string,
  options: ToolRunOptions,
  context: Context,
): Promise<number> {
  const target = await readTarget(name, options, context);
  const debug = readDebugOptions(target, options, context);

  await using stack = new AsyncDisposableStack();
  const home = stack.use(await createPassableDirectory("str-tool-run-"));
  const foundation = stack.use(
    await openTarget(target, { ...options, home: home.path, debug }, context),
  );
  const called = calledOf(target, options, foundation);
  const connections: EndedConnection[] = [];
  const observer = {
    ...createObserver(target, options, context),
    onConnection: (connection: EndedConnection) => void connections.push(connection),
  };
  const network = options.network && learningNetwork();
  const localInvoker = stack.use(
    openLocalInvoker(foundation, { caller, observer, debug, network }),
  );
  using _interrupts = options.debug ? context.leaveInterrupts() : undefined;
  const run = async (): Promise<number> => {
    const answer = await runOnce(called, options, localInvoker, context);
    const made = connections.splice(0);
    // A tool that did not run needed nothing that is known.
    const hasRun = answer.kind !== "error" || made.length > 0;
    if (network !== undefined && hasRun) reportLearned(made, context.err);
    if (answer.kind === "error" && !isDebugged(options))
      await tellOfOthers(target, options.config, foundation, context);
    return exitCodeOf(answer);
  };
  const watched = target.kind === "code" ? target.toolsDir : target.directory;
  return await (options.watch ? runAtChanges(watched, run, context) : run());
}

/** Throws UsageError where several tools could be meant. */
function calledOf(target: Target, options: ToolRunOptions, opened: LocalFoundation): Called {
  const names = servedNames(target, opened);
  const [name] = names;
  if (name === undefined || names.length > 1)
    throw new UsageError(`choose a tool of the manifest with --tool; ${listed(names)}`);
  const { catalog } = opened.foundation;
  const own = catalog.manifest.tools.get(name)?.profile;
  const profile = options.profile ?? own ?? opened.config.sandbox.defaultProfile;
  return { target, name, profile };
}

function createObserver(
  target: Target,
  options: ToolRunOptions,
  context: Context,
): SandboxObserver {
  const dirs = dirsOf(target);
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
  called: Called,
  options: ToolRunOptions,
  localInvoker: LocalInvoker,
  context: Context,
): Promise<Answer> {
  const inputs = await readInputs(options);
  refuseReferences(inputs);
  const staged = await stageInputs(inputs, options.args, localInvoker.artifacts, context.signal);
  const toolCall = { ...staged, ...fixedPart(called, options) };
  using _reporting = reportCancel(context);
  const end = await callHere(localInvoker, toolCall, statusPrinter(context), context);
  const { answer, cause, executionTimeMs, unenforced } = end;
  printResult(answer, options.json ?? false, context);
  if (options.network === undefined) printRefusals(answer, context);
  // What agents are not told, and who runs the tool on this host needs.
  for (const line of withCauses(cause)) context.err.line(printable(`because: ${line}`));
  if (answer.kind === "success" && options.out !== undefined) {
    for (const artifact of answer.createdArtifacts) {
      const path = await localInvoker.artifacts.download(artifact, options.out, context.signal);
      context.err.line(`saved ${printable(path)}`);
    }
  }
  tellOfRun(called, executionTimeMs, unenforced, context);
  return answer;
}

/** Names the tools of a class or a program that has several, where none of them was called. */
async function tellOfOthers(
  target: Target,
  toolConfig: JsonObject,
  { config, host, foundation }: LocalFoundation,
  { err, signal }: Context,
): Promise<void> {
  if (target.kind === "manifest" || target.tool !== undefined) return;
  const entry = foundation.catalog.resolve(servedName(target));
  if (entry === undefined || target.callable.kind === "function") return;
  const descriptions = wireDescriptions(config, host, foundation);
  // The error of the call has been told; this only adds to it.
  const described = await descriptions
    .describeAll(entry, signal, toolConfig)
    .catch(() => new Map<string, unknown>());
  signal.throwIfAborted();
  const names = [...described.keys()];
  if (names.length === 0 || names.includes(entry.name)) return;
  err.line(printable(`choose a tool of ${titleOf(target)} with --tool; ${listed(names)}`));
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

function fixedPart({ target, name, profile }: Called, options: ToolRunOptions): ToolCall {
  return {
    tool: name,
    toolConfig: options.config,
    // Nobody counts the time at a debugger's prompt.
    timeoutSeconds: isDebugged(options) ? maxTimeoutSeconds : options.timeout,
    // An entry has its own. A request for it would hold the tools that it calls to it, too.
    ...(target.kind === "code" && { profile }),
  };
}

/** As people know it. */
function titleOf({ callable, tool }: CodeTarget): string {
  return tool ?? callable.name;
}

function tellOfRun(
  { target, name, profile }: Called,
  executionTimeMs: number,
  unenforced: readonly string[],
  { err }: Context,
): void {
  const lack = unenforced.length > 0 ? `, without ${unenforced.join(" and ")} on this host` : "";
  const title = target.kind === "code" ? titleOf(target) : name;
  const text = `${title} took ${executionTimeMs} ms under the profile ${profile}${lack}`;
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
