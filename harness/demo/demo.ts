/**
 * `harness demo`: a broker, a real worker, and the example tools in their sandboxes, with nothing
 * prepared.
 */
import { once } from "node:events";
import { chmod, mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Environment } from "../../worker/config/config.ts";
import { invokeTopic } from "../../worker/protocol/topics.ts";
import { Agent, type CallResult } from "../agent.ts";
import { SharedArtifacts } from "../artifacts.ts";
import { type Context, exit } from "../context.ts";
import { type DemoStoreKind, defaultSessionId, defaultUserId } from "../options/defaults.ts";
import { openDemoStore } from "./demo-stores.ts";
import { type Step, Unexpected, prepareSteps, quickCall } from "./demo-steps.ts";
import type { DevBroker } from "../dev-broker/dev-broker.ts";
import { listen } from "../dev-broker/embedded-broker.ts";
import {
  exampleExecutableDir,
  exampleManifest,
  exampleNodeDir,
  examplePythonDir,
  exampleText,
} from "../package.ts";
import { type Programs, findPrograms } from "../prerequisites.ts";
import { type Style, printable } from "../invoke/screen.ts";
import { createPassableDirectory } from "../temporary.ts";
import { consoleLink, consoleVariables, freePort } from "../worker/console.ts";
import { WorkerProcess } from "../worker/worker-process.ts";

const namespace = "demo";
/** Calls that are timed. */
const quickCalls = 20;
/** Milliseconds that the worker may take to serve its tools. */
const startTimeoutMs = 60_000;
/** A variable that is in the worker's environment to be looked for from inside a sandbox. */
const workerVariable = "DEMO_SECRET";

/** The command line. */
export interface DemoOptions {
  readonly store: DemoStoreKind;
  /** Whether the calls are shown in a browser, too, until the context's signal. */
  readonly console?: boolean;
}

/**
 * Runs the demo. Returns 0 when every call ended as it has to, 1 when one did not; throws
 * CommandError.
 */
export async function demo(
  { store: kind, console: hasConsole = false }: DemoOptions,
  context: Context,
): Promise<number> {
  const { out, clock } = context;
  out.line(out.paint("bold", "Secure Tool Runtime: the demo"));
  const programs = await findPrograms(context.environment);
  await using stack = new AsyncDisposableStack();
  const home = stack.use(await createPassableDirectory("str-demo-"));
  const broker = stack.use(await listen("127.0.0.1", 0));
  const demoStore = stack.use(await openDemoStore(kind, home.path));

  const startedAtMs = clock.monotonicMs();
  const environment = {
    ...(await prepareHome(home.path, broker, programs)),
    ...demoStore.variables,
    ...(hasConsole && { ...consoleVariables(await freePort(), {}), TOOL_LOGS: "caller" }),
  };
  const worker = stack.use(new WorkerProcess(environment));
  const signal = AbortSignal.any([context.signal, worker.ended]);
  await ready(broker, worker, signal);
  const startMs = clock.monotonicMs() - startedAtMs;
  out.line(
    `A DevBroker listens on ${broker.host}:${broker.port}, a worker is ready after ${time(startMs)}.`,
  );
  out.line(demoStore.title);

  const caller = { appName: namespace, userId: defaultUserId, sessionId: defaultSessionId };
  const storeOptions = {
    environment,
    namespace,
    caller,
    purpose: "The demo",
    use: "write",
    credentials: demoStore.credentials,
  } as const;
  const store = stack.use(await SharedArtifacts.open(storeOptions, signal));
  const { host, port } = broker;
  const agent = stack.use(await Agent.connect({ host, port, namespace }, signal));
  const steps = await prepareSteps({
    store,
    places: () => demoStore.places(),
    downloads: join(home.path, "downloads"),
    textFile: exampleText(),
    openPort: port,
    hostFile: join(home.path, hostFileName),
    workerVariable,
    signal,
  });
  const demo: DemoContext = { agent, signal, context };
  let asExpected = 0;
  for (const [index, step] of steps.entries()) {
    if (await show(step, index + 1, demo)) asExpected++;
  }
  const medianMs = await timeQuickCalls(demo);
  const isGood = asExpected === steps.length && medianMs !== undefined;
  const speed =
    medianMs === undefined
      ? ""
      : `; median overhead ${time(medianMs)}: echo_tool from publication to answer, a new sandbox each time`;
  const summary = `${asExpected} of ${steps.length} calls ended as they should${speed}`;
  out.line(out.paint(isGood ? ["bold", "green"] : ["bold", "red"], `\n${summary}`));
  if (hasConsole) await showConsole(environment, context, signal);
  return isGood ? exit.success : exit.failure;
}

/** Keeps the worker until Ctrl-C. Throws when the worker ends before. */
async function showConsole(
  environment: Environment,
  { out, signal: asked }: Context,
  signal: AbortSignal,
): Promise<void> {
  out.line(`\n${out.paint("bold", `Console: ${consoleLink(environment)}`)}`);
  out.line("It shows the calls above, and makes more. Ctrl-C ends the demo.");
  if (!signal.aborted) await once(signal, "abort");
  if (!asked.aborted) signal.throwIfAborted();
}

const hostFileName = "on-the-host.txt";

/** Fills the demo's directory; returns the environment of a worker that lives there. */
async function prepareHome(
  home: string,
  broker: DevBroker,
  programs: Programs,
): Promise<Environment> {
  const workDir = join(home, "work");
  await mkdir(workDir);
  await chmod(workDir, 0o711);
  // Readable for everybody: nothing but the sandbox keeps a tool from it.
  await writeFile(join(home, hostFileName), "Whoever reads this is on the host.\n");
  await chmod(join(home, hostFileName), 0o644);
  return {
    PATH: "/usr/local/bin:/usr/bin:/bin",
    SAM_NAMESPACE: namespace,
    SAM_WORKER_ID: "demo-worker",
    DEV_BROKER_HOST: broker.host,
    DEV_BROKER_PORT: String(broker.port),
    // A worker whose demo was killed gives up within seconds.
    CONNECT_RETRIES: "5",
    CONNECT_RETRY_DELAY_MS: "1000",
    MANIFEST_PATH: exampleManifest,
    TOOLS_PYTHON_DIR: examplePythonDir,
    TOOLS_NODE_DIR: exampleNodeDir,
    TOOLS_EXECUTABLE_DIR: exampleExecutableDir,
    SANDBOX_BWRAP_BIN: programs.bwrapBin,
    SANDBOX_PYTHON_BIN: programs.pythonBin,
    SANDBOX_WORK_DIR: workDir,
    SANDBOX_MIN_FREE_DISK_MB: "0",
    HEALTH_PORT: "0",
    DRAIN_TIMEOUT_SECONDS: "2",
    LOG_LEVEL: "warn",
    [workerVariable]: "seen",
  };
}

/**
 * Resolves when the worker serves the example tools. Throws the signal's reason, or CommandError
 * when it takes too long.
 */
async function ready(broker: DevBroker, worker: WorkerProcess, signal: AbortSignal): Promise<void> {
  const timeout = AbortSignal.timeout(startTimeoutMs);
  try {
    // It names all its subscriptions in one command.
    const topic = invokeTopic(namespace, quickCall.tool);
    await broker.whenSubscribed(topic, AbortSignal.any([signal, timeout]));
  } catch (error) {
    signal.throwIfAborted();
    if (!timeout.aborted) throw error;
    throw worker.failure(`the worker was not ready within ${time(startTimeoutMs)}`);
  }
}

/** What a call needs. */
interface DemoContext {
  readonly agent: Agent;
  readonly signal: AbortSignal;
  readonly context: Context;
}

/** Makes the call of a step before everybody's eyes. Returns whether it ended as it has to. */
async function show(step: Step, number: number, { agent, signal, context }: DemoContext) {
  const { out } = context;
  const statuses: string[] = [];
  out.line(`\n${out.paint("bold", `${number}. ${step.title}`)}`);
  for (const line of describeCall(step)) out.line(`   ${printable(line)}`);
  const result = await agent.call(step.call, {
    signal,
    onStatus: (text) => {
      statuses.push(text);
      out.line(out.paint("dim", `   … ${printable(text)}`));
    },
  });
  try {
    const lines = await step.judge(result, statuses);
    printCall(context, "green", "✓", lines, result);
    return true;
  } catch (error) {
    if (!(error instanceof Unexpected)) throw error;
    printCall(context, "red", "✗", [error.message], result);
    return false;
  }
}

function describeCall({ call }: Step): readonly string[] {
  const { code, ...args } = call.args ?? {};
  if (typeof code !== "string") return [`${call.tool} ${JSON.stringify(args)}`];
  return [call.tool, ...code.split("\n").map((line) => `| ${line}`)];
}

function printCall(
  { out }: Context,
  style: Style,
  bullet: string,
  lines: readonly string[],
  result: CallResult,
): void {
  for (const line of lines) {
    const isContinued = line.startsWith(" ");
    out.line(`   ${isContinued ? " " : out.paint(style, bullet)} ${printable(line)}`);
  }
  const inWorker =
    result.kind === "success" ? `, ${time(result.executionTimeMs)} of them in the worker` : "";
  out.line(out.paint("dim", `   ${time(result.roundTripMs)}${inWorker}`));
}

/**
 * Median round trip in milliseconds of quick calls, one after another; undefined when one failed.
 */
async function timeQuickCalls({
  agent,
  signal,
  context,
}: DemoContext): Promise<number | undefined> {
  const { out } = context;
  const roundTripsMs: number[] = [];
  out.line(`\n${out.paint("bold", `${quickCalls} calls of ${quickCall.tool}, one after another`)}`);
  for (let count = 0; count < quickCalls; count++) {
    const result = await agent.call(quickCall, { signal });
    if (result.kind !== "success") {
      out.line(`   ${out.paint("red", "✗")} call ${count + 1} ended with ${result.kind}`);
      return undefined;
    }
    roundTripsMs.push(result.roundTripMs);
  }
  const sorted = roundTripsMs.toSorted((a, b) => a - b);
  const [median, least, most] = [sorted[quickCalls / 2], sorted[0], sorted.at(-1)];
  if (median === undefined || least === undefined || most === undefined) return undefined;
  out.line(`   ${time(least)} to ${time(most)}, median ${time(median)}`);
  return median;
}

function time(ms: number): string {
  return ms < 1000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`;
}
