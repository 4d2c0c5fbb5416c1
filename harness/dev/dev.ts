/**
 * `harness dev`: a DevBroker and a worker that is started anew whenever its source changes.
 */
import { relative, resolve, sep } from "node:path";
import type { Environment } from "../../worker/config/config.ts";
import type { JsonObject } from "../../worker/support/json/json.ts";
import { parseInvokeTopic } from "../../worker/protocol/topics.ts";
import { type Context, UsageError, exit } from "../context.ts";
import type { DevBroker } from "../dev-broker/dev-broker.ts";
import { listen } from "../dev-broker/embedded-broker.ts";
import { fallbackNamespace, loopback } from "../options/options.ts";
import { harnessCommandPath, workerSources } from "../package.ts";
import { findPrograms } from "../prerequisites.ts";
import { printable } from "../invoke/screen.ts";
import { createPassableDirectory } from "../temporary.ts";
import {
  type ToolsLayout,
  hasManifest,
  isDirectory,
  layoutOf,
  makeLanguageDirs,
  usualToolsDir,
} from "../tools-layout.ts";
import { quote, shortPath, typedCommand } from "../options/typed-command.ts";
import { reachable } from "../worker/worker-command.ts";
import { WorkerProcess } from "../worker/worker-process.ts";
import { defaultPort } from "../options/defaults.ts";
import { DevLog } from "./dev-log.ts";
import { SourceChanges } from "./source-changes.ts";
import { consoleLink, consoleVariables } from "../worker/console.ts";
import { workerEnvironment } from "./worker-environment.ts";

/** Changed files that are named. */
const maxShownFiles = 3;

/** The command line. */
export interface DevOptions {
  /** The directory of a manifest. */
  readonly tools?: string;
  readonly host: string;
  readonly port: number;
  readonly namespace: string;
  /** Port of the worker's console; undefined for none but the environment's. */
  readonly consolePort?: number;
}

/**
 * Serves until the context's signal; that is its regular end. Throws CommandError when it cannot
 * listen.
 */
export async function dev(options: DevOptions, context: Context): Promise<number> {
  const { out } = context;
  const layout = await layoutFor(options.tools, context.environment);
  const programs = await findPrograms(context.environment);
  await using stack = new AsyncDisposableStack();
  const home = stack.use(await createPassableDirectory("str-dev-"));
  const broker = stack.use(await listen(options.host, options.port));
  const { namespace } = options;
  const surroundings = { layout, namespace, broker, programs, home: home.path };
  const consoleSettings = consoleVariables(options.consolePort, context.environment);
  const environment = {
    ...workerEnvironment(context.environment, surroundings),
    ...consoleSettings,
  };
  const manifestPath = environment["MANIFEST_PATH"] ?? "";
  const changes = stack.use(
    await SourceChanges.open([...workerSources, manifestPath], context.clock, (error) => {
      out.line(printable(`changes of the source are not seen: ${String(error)}`));
    }),
  );
  out.line(`DevBroker listens on ${broker.host}:${broker.port}.`);
  out.line(
    printable(`Tools: ${shortPath(manifestPath)}. What changes holds from the next call on.`),
  );
  if (workerSources.every(isBelowHere)) {
    const sources = workerSources.map(shortPath).join(" or ");
    out.line(`The worker starts anew when a file below ${sources} changes.`);
  }
  const onReady = createTeller(broker, namespace, environment, context);
  if (options.consolePort !== undefined)
    out.line(out.paint("bold", `Console: ${consoleLink(consoleSettings)}`));
  await runWorkers(environment, changes, onReady, context);
  out.line("Stopped.");
  return exit.success;
}

/**
 * The tools that one says, those that the environment says (undefined), those of this directory, or
 * the examples (undefined). Throws UsageError when there is no such directory.
 */
async function layoutFor(
  tools: string | undefined,
  environment: Environment,
): Promise<ToolsLayout | undefined> {
  if (tools === undefined) {
    if (environment["MANIFEST_PATH"]) return undefined;
    const usual = await usualToolsDir();
    return (await hasManifest(usual)) ? layoutFor(usual, environment) : undefined;
  }
  if (!(await isDirectory(tools)))
    throw new UsageError(`--tools ${resolve(tools)}: there is no such directory`);
  const layout = await layoutOf(tools);
  await makeLanguageDirs(layout);
  return layout;
}

function isBelowHere(path: string): boolean {
  return !relative("", path).startsWith("..");
}

/**
 * One worker after the other, the next one when the source has changed. The last one is drained
 * when the signal aborts.
 */
async function runWorkers(
  environment: Environment,
  changes: SourceChanges,
  onReady: (facts: JsonObject) => void,
  { out, signal }: Context,
): Promise<void> {
  const dirs = {
    pythonDir: environment["TOOLS_PYTHON_DIR"] ?? "",
    nodeDir: environment["TOOLS_NODE_DIR"] ?? "",
    executableDir: environment["TOOLS_EXECUTABLE_DIR"] ?? "",
  };
  const log = new DevLog({ level: environment["LOG_LEVEL"], dirs, screen: out, onReady });
  const workersOwn = { ...environment, LOG_LEVEL: log.workerLevel };
  const start = (): WorkerProcess =>
    new WorkerProcess(workersOwn, {
      onLine: (line) => log.take(line),
      onEnd: (how) => {
        const text = `The worker ended with ${how}. It is started again at the next change.`;
        out.line(out.paint("red", text));
      },
      drainMs: Number(environment["DRAIN_TIMEOUT_SECONDS"]) * 1000,
    });
  let worker = start();
  try {
    for await (const files of changes.batches(signal)) {
      // A worker that runs follows its manifest itself.
      if (!worker.ended.aborted && !files.some(isSource)) continue;
      out.line(
        out.paint("bold", `Changed: ${printable(describe(files))}. The worker starts anew.`),
      );
      await worker[Symbol.asyncDispose]();
      if (signal.aborted) return;
      worker = start();
    }
  } finally {
    await worker[Symbol.asyncDispose]();
  }
}

function isSource(path: string): boolean {
  return workerSources.some((directory) => path.startsWith(directory + sep));
}

function describe(files: readonly string[]): string {
  const shown = files.slice(0, maxShownFiles).map(shortPath).join(", ");
  return files.length > maxShownFiles ? `${shown} and others` : shown;
}

/** What says of a worker that is ready what it serves, and the first time how to call it. */
function createTeller(
  broker: DevBroker,
  namespace: string,
  environment: Environment,
  { out }: Context,
): (facts: JsonObject) => void {
  let isFirst = true;
  return ({ topics }) => {
    const served = Array.isArray(topics) ? topics : [];
    const tools = served.flatMap((topic) => parseInvokeTopic(namespace, String(topic)) ?? []);
    const text = tools.length === 0 ? "no tool" : tools.join(", ");
    out.line(out.paint("bold", printable(`The worker serves ${text}.`)));
    if (isFirst && tools.length > 0) {
      out.line(howToCall(broker, namespace, tools, environment));
      isFirst = false;
    }
  };
}

function howToCall(
  broker: DevBroker,
  namespace: string,
  tools: readonly string[],
  environment: Environment,
): string {
  const echo = "echo_tool";
  const tool = tools.includes(echo) ? echo : (tools[0] ?? "");
  const args = tool === echo ? `{"message": "hello"}` : "{}";
  const store = ["ARTIFACT_SERVICE_TYPE", "ARTIFACT_BASE_PATH"].map(
    (name) => `${name}=${quote(environment[name] ?? "")}`,
  );
  const [host, port] = [reachable(broker.host), broker.port];
  const isUsual = host === loopback && port === defaultPort;
  const command = [
    `${typedCommand("harness", harnessCommandPath, environment)} invoke`,
    ...(isUsual ? [] : [`--broker ${quote(`${host}:${port}`)}`]),
    ...(namespace === fallbackNamespace ? [] : [`--namespace ${quote(namespace)}`]),
    `--tool ${tool} --args ${quote(args)}`,
  ];
  return [
    "To call a tool, in another terminal:\n",
    `  ${command.join(" ")}\n`,
    "For --artifact and --out it needs the worker's store:\n",
    `  export ${store.join(" ")}\n`,
  ].join("\n");
}
