/**
 * `harness invoke`: one call, as an agent makes it, and what became of it.
 */
import type { JsonObject } from "../worker/support/json.ts";
import { Agent, type CallResult, defaultAgentName } from "./agent.ts";
import { exitCodeOf, statusTeller, tellResult } from "./answer.ts";
import { SharedArtifacts } from "./artifacts.ts";
import { openToldBroker } from "./broker-option.ts";
import { type CallInputs, readInputs, stageInputs } from "./call-inputs.ts";
import { type Context, UsageError, exit } from "./context.ts";
import { type EmbeddedBroker, startEmbeddedBroker } from "./embedded-broker.ts";
import { RequestTooLargeError, type ToolCall } from "./messages.ts";
import type { Assignment } from "./option-values.ts";
import { printable } from "./screen.ts";
import { type Wanted, explainNoAnswer, workerAnswers, workerSubscribes } from "./worker-wait.ts";

/** The command line. */
export interface InvokeOptions {
  readonly tool: string;
  readonly args: JsonObject;
  readonly artifact: readonly Assignment[];
  readonly preload: readonly Assignment[];
  readonly config: JsonObject;
  /** Seconds that the tool may take, and that a worker is waited for. */
  readonly timeout: number;
  readonly profile: string;
  readonly user: string;
  readonly session: string;
  readonly namespace: string;
  /** For `broker`; our own broker always waits. */
  readonly waitForWorker?: boolean;
  /** Directory for the artifacts that the tool creates. */
  readonly out?: string;
  readonly json?: boolean;
  /** A running broker, as `chooseBroker` reads it; without it one is started on `host` and `port`. */
  readonly broker?: string;
  readonly host: string;
  readonly port: number;
}

/** Makes the call and tells what became of it. Returns the exit code. */
export async function invoke(options: InvokeOptions, context: Context): Promise<number> {
  const { namespace } = options;
  const wanted: Wanted = { tool: options.tool, namespace, timeoutSeconds: options.timeout };
  const inputs = await readInputs(options);
  await using stack = new AsyncDisposableStack();
  const store = await openStoreIfNeeded(options, inputs, context);
  if (store) stack.use(store);

  const target = options.broker ?? stack.use(await startEmbeddedBroker(options.host, options.port));
  const embedded = typeof target === "string" ? undefined : target;
  if (embedded && !(await workerSubscribes(wanted, embedded, context))) return exit.timedOut;
  const agent = stack.use(await connect(target, namespace, context));
  if (!embedded && options.waitForWorker && !(await workerAnswers(wanted, agent, context))) {
    return exit.timedOut;
  }

  const staged = await stageInputs(inputs, options.args, store, context.signal);
  const result = await place({ ...staged, ...fixedPart(options) }, agent, context);
  tellResult(result, options.json ?? false, context);
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

/** Connects to the broker that the command line names, or to ours. */
async function connect(
  target: string | EmbeddedBroker,
  namespace: string,
  context: Context,
): Promise<Agent> {
  if (typeof target !== "string") {
    const { host, port } = target.broker;
    return Agent.connect({ host, port, namespace }, context.signal);
  }
  const { broker } = await openToldBroker(target, { namespace, name: defaultAgentName }, context);
  return Agent.on(broker, { namespace }, context.signal);
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
  return SharedArtifacts.open({ environment, namespace, caller, purpose }, signal);
}

function fixedPart(options: InvokeOptions): ToolCall {
  return {
    tool: options.tool,
    toolConfig: options.config,
    userId: options.user,
    sessionId: options.session,
    timeoutSeconds: options.timeout,
    profile: options.profile,
  };
}

async function place(call: ToolCall, agent: Agent, context: Context): Promise<CallResult> {
  try {
    return await agent.call(call, {
      signal: context.signal,
      onStatus: statusTeller(context),
    });
  } catch (error) {
    if (!(error instanceof RequestTooLargeError)) throw error;
    throw new UsageError(`${error.message}. Send large content with --artifact.`, { cause: error });
  }
}
