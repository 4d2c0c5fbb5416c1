/**
 * `harness invoke`: makes one call as an agent does, and prints the outcome.
 */
import type { JsonObject } from "../../worker/support/json/json.ts";
import { type Agent, type CallResult, defaultAgentName } from "../agent.ts";
import { exitCodeOf, printResult, statusPrinter, reportCancel } from "./answer.ts";
import { SharedArtifacts } from "../artifacts.ts";
import { type CallInputs, readInputs, stageInputs } from "./call-inputs.ts";
import { type Context, UsageError, exit } from "../context.ts";
import { openTarget } from "./invoke-target.ts";
import { RequestTooLargeError, type ToolCall } from "../messages.ts";
import type { Assignment } from "../options/option-values.ts";
import { printable } from "./screen.ts";
import { printRefusals, printToolLogs } from "./execution-facts.ts";
import {
  type Wanted,
  explainNoAnswer,
  workerAnswers,
  workerSubscribes,
} from "../worker/worker-wait.ts";

/** Milliseconds for the answer of a cancelled call: grace of the tool, and deletion of outputs. */
const cancelledAnswerMs = 10_000;

/** The command line. */
export interface InvokeOptions {
  readonly tool: string;
  readonly args: JsonObject;
  readonly artifact: readonly Assignment[];
  readonly preload: readonly Assignment[];
  readonly config: JsonObject;
  /** Time limit in seconds of the tool, and of the wait for a worker. */
  readonly timeout: number;
  readonly profile: string;
  readonly user: string;
  readonly session: string;
  readonly traceparent?: string;
  readonly namespace: string;
  /** For `broker`; by default the command waits for a worker. */
  readonly waitForWorker?: boolean;
  /** Directory for the artifacts that the tool creates. */
  readonly out?: string;
  readonly json?: boolean;
  /** Whether to show what the tool printed. */
  readonly logs?: boolean;
  /**
   * A running broker, as `chooseBroker` reads it; without it the one on `host` and `port`, which is
   * started if need be.
   */
  readonly broker?: string;
  readonly host: string;
  readonly port: number;
}

/** Makes the call and prints its outcome. Returns the exit code. */
export async function invoke(options: InvokeOptions, context: Context): Promise<number> {
  const { namespace } = options;
  const wanted: Wanted = { tool: options.tool, namespace, timeoutSeconds: options.timeout };
  const inputs = await readInputs(options);
  await using stack = new AsyncDisposableStack();
  const store = await openStoreIfNeeded(options, inputs, context);
  if (store) stack.use(store);

  const target = await openTarget(options, stack, context);
  const { embedded, isFound } = target;
  if (embedded && !(await workerSubscribes(wanted, embedded, context))) return exit.timedOut;
  const agent = stack.use(await target.connect());
  const patience = options.waitForWorker ? "served" : "answered";
  const waits = isFound || (!embedded && options.waitForWorker);
  if (waits && !(await workerAnswers(wanted, patience, agent, context))) return exit.timedOut;

  const staged = await stageInputs(inputs, options.args, store, context.signal);
  const result = await placeCall({ ...staged, ...fixedPart(options) }, agent, context);
  if (options.logs) printToolLogs(result, context);
  printResult(result, options.json ?? false, context);
  printRefusals(result, context);
  // Ctrl-C was for the call, and it has ended.
  if (result.kind !== "success") context.signal.throwIfAborted();
  if (result.kind === "no-answer") {
    explainNoAnswer(wanted, result, embedded, context);
  }
  if (result.kind === "success" && store && options.out !== undefined) {
    for (const artifact of result.createdArtifacts) {
      const path = await store.download(artifact, options.out, context.signal);
      context.err.line(`saved ${printable(path)}: version ${artifact.version}`);
    }
  }
  return exitCodeOf(result);
}

/** The worker's store, if the call needs it on this side. */
async function openStoreIfNeeded(
  { namespace, out, user, session }: InvokeOptions,
  inputs: CallInputs,
  { environment, signal }: Context,
): Promise<SharedArtifacts | undefined> {
  const purpose =
    inputs.artifacts.length > 0 ? "--artifact" : out === undefined ? undefined : "--out";
  if (purpose === undefined) return undefined;
  const caller = { appName: defaultAgentName, userId: user, sessionId: session };
  return SharedArtifacts.open({ environment, namespace, caller, purpose, use: "write" }, signal);
}

function fixedPart(options: InvokeOptions): ToolCall {
  const { traceparent } = options;
  return {
    tool: options.tool,
    toolConfig: options.config,
    userId: options.user,
    sessionId: options.session,
    timeoutSeconds: options.timeout,
    profile: options.profile,
    ...(traceparent !== undefined && { traceparent }),
  };
}

async function placeCall(call: ToolCall, agent: Agent, context: Context): Promise<CallResult> {
  using _reporting = reportCancel(context);
  using cancelling = boundCancel(context);
  try {
    return await agent.call(call, {
      cancel: context.signal,
      signal: cancelling.over,
      onStatus: statusPrinter(context),
    });
  } catch (error) {
    if (!(error instanceof RequestTooLargeError)) throw error;
    throw new UsageError(`${error.message}. Send large content with --artifact.`, { cause: error });
  }
}

/** Aborts `over` when the answer takes too long after Ctrl-C: a worker may know no cancels. */
function boundCancel({ signal }: Context): Disposable & { readonly over: AbortSignal } {
  const leaving = new AbortController();
  let timer: NodeJS.Timeout | undefined;
  const onInterruption = (): void => {
    timer = setTimeout(() => leaving.abort(signal.reason), cancelledAnswerMs);
  };
  signal.addEventListener("abort", onInterruption, { once: true });
  const dispose = (): void => {
    signal.removeEventListener("abort", onInterruption);
    clearTimeout(timer);
  };
  return { over: leaving.signal, [Symbol.dispose]: dispose };
}
