/**
 * `harness dev`: a DevBroker and a worker that is started anew whenever its source changes.
 */
import { mkdir, stat } from "node:fs/promises";
import { join, resolve, sep } from "node:path";
import type { Environment } from "../../worker/config.ts";
import { parseInvokeTopic } from "../../worker/protocol/topics.ts";
import { type Context, UsageError, exit } from "../context.ts";
import type { DevBroker } from "../dev-broker.ts";
import { listen } from "../embedded-broker.ts";
import { showLogLine } from "../log-view.ts";
import {
  exampleManifest,
  exampleNodeDir,
  examplePythonDir,
  harnessCommandPath,
  workerSources,
} from "../package.ts";
import { type Programs, findPrograms } from "../prerequisites.ts";
import { printable } from "../screen.ts";
import { createPassableDirectory } from "../temporary.ts";
import { quote, reachable, shortPath } from "../worker-command.ts";
import { WorkerProcess } from "../worker-process.ts";
import { SourceChanges } from "./source-changes.ts";

/** Seconds that running calls get when the worker is to start anew, unless the environment says. */
const drainSeconds = 5;
/** Changed files that are named. */
const maxShownFiles = 3;

/** The command line. */
export interface DevOptions {
  /** A directory with `manifest.yaml`, `python/` and `node/`. */
  readonly tools?: string;
  readonly host: string;
  readonly port: number;
  readonly namespace: string;
}

/** Serves until the context's signal; that is its regular end. Throws CommandError when it cannot listen. */
export async function dev(options: DevOptions, context: Context): Promise<number> {
  const { out } = context;
  const toolsDir = options.tools === undefined ? undefined : await prepareToolsDir(options.tools);
  const programs = await findPrograms(context.environment);
  await using stack = new AsyncDisposableStack();
  const home = stack.use(await createPassableDirectory("str-dev-"));
  const broker = stack.use(await listen(options.host, options.port));
  const environment = workerEnvironment(context.environment, {
    toolsDir,
    namespace: options.namespace,
    broker,
    programs,
    home: home.path,
  });
  const followed = [...workerSources, environment["MANIFEST_PATH"] ?? ""];
  const changes = stack.use(
    await SourceChanges.open(followed, context.clock, (error) => {
      out.line(printable(`changes of the source are not seen: ${String(error)}`));
    }),
  );
  out.line(`DevBroker listens on ${broker.host}:${broker.port}.`);
  const sources = workerSources.map(shortPath).join(" or ");
  out.line(`The worker starts anew when a file below ${sources} changes.`);
  tellOfWorkers(broker, options.namespace, environment, context);
  await runWorkers(environment, changes, context);
  out.line("Stopped.");
  return exit.success;
}

/**
 * The directory of a manifest, with a directory for each language: a worker opens only those that are there when it
 * starts, and a first tool of the other may come any time. Throws UsageError when there is no such directory.
 */
async function prepareToolsDir(directory: string): Promise<string> {
  const path = resolve(directory);
  const stats = await stat(path).catch(() => undefined);
  if (stats?.isDirectory() !== true)
    throw new UsageError(`--tools ${path}: there is no such directory`);
  for (const language of ["python", "node"]) await mkdir(join(path, language), { recursive: true });
  return path;
}

/** One worker after the other, the next one when the source has changed. The last one is drained when the signal aborts. */
async function runWorkers(
  environment: Environment,
  changes: SourceChanges,
  { out, signal }: Context,
): Promise<void> {
  const start = (): WorkerProcess =>
    new WorkerProcess(environment, {
      onLine: (line) => showLogLine(line, out),
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

/** What the worker's surroundings are. */
interface Surroundings {
  /** Absolute; undefined for what the environment says, or the examples. */
  readonly toolsDir: string | undefined;
  readonly namespace: string;
  readonly broker: DevBroker;
  readonly programs: Programs;
  /** A directory that sandboxes can reach, removed in the end. */
  readonly home: string;
}

/** Our own environment with everything in it that a worker needs. */
function workerEnvironment(
  own: Environment,
  { toolsDir, namespace, broker, programs, home }: Surroundings,
): Environment {
  const given = Object.fromEntries(Object.entries(own).filter(([, value]) => value !== ""));
  return {
    MANIFEST_PATH: exampleManifest,
    TOOLS_PYTHON_DIR: examplePythonDir,
    TOOLS_NODE_DIR: exampleNodeDir,
    SANDBOX_BWRAP_BIN: programs.bwrapBin,
    SANDBOX_PYTHON_BIN: programs.pythonBin,
    SANDBOX_WORK_DIR: join(home, "work"),
    ARTIFACT_SERVICE_TYPE: "filesystem",
    ARTIFACT_BASE_PATH: join(home, "artifacts"),
    HEALTH_PORT: "0",
    DRAIN_TIMEOUT_SECONDS: String(drainSeconds),
    ...given,
    ...(toolsDir !== undefined && {
      MANIFEST_PATH: join(toolsDir, "manifest.yaml"),
      TOOLS_PYTHON_DIR: join(toolsDir, "python"),
      TOOLS_NODE_DIR: join(toolsDir, "node"),
    }),
    SAM_NAMESPACE: namespace,
    DEV_BROKER_HOST: reachable(broker.host),
    DEV_BROKER_PORT: String(broker.port),
    // A worker whose supervisor was killed loses its broker with it, and gives up within seconds.
    CONNECT_RETRIES: "5",
    CONNECT_RETRY_DELAY_MS: "1000",
  };
}

/** Says what a worker serves when it has come, and the first time how to call it. */
function tellOfWorkers(
  broker: DevBroker,
  namespace: string,
  environment: Environment,
  { out }: Context,
): void {
  let lastClient: string | null | undefined;
  broker.events.on("subscribed", ({ clientId, patterns }) => {
    const tools = patterns.flatMap((topic) => parseInvokeTopic(namespace, topic) ?? []);
    if (tools.length === 0 || clientId === lastClient) return;
    out.line(out.paint("bold", `The worker serves ${tools.join(", ")}.`));
    if (lastClient === undefined) out.line(howToCall(broker, namespace, tools, environment));
    lastClient = clientId;
  });
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
  const address = `${reachable(broker.host)}:${broker.port}`;
  return [
    "To call a tool, in another terminal:\n",
    `  ${quote(shortPath(harnessCommandPath))} invoke --broker ${quote(address)} --namespace ${quote(namespace)} \\`,
    `    --wait-for-worker --tool ${tool} --args ${quote(args)}\n`,
    "For --artifact and --out it needs the worker's store:\n",
    `  export ${store.join(" ")}\n`,
  ].join("\n");
}
