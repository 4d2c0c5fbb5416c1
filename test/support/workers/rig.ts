/**
 * A whole worker for tests: a real DevBroker, a real worker in this process, an agent, all in
 * temporary directories.
 */
import { chmod, cp, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { Writable } from "node:stream";
import { fileURLToPath } from "node:url";
import { Agent, type CallResult } from "../../../harness/agent.ts";
import { type DevBroker, startDevBroker } from "../../../harness/dev-broker/dev-broker.ts";
import type { ToolCall } from "../../../harness/messages.ts";
import { openStore } from "../../../worker/artifacts/open.ts";
import type { ArtifactScope, ArtifactStore } from "../../../worker/artifacts/store.ts";
import { type Config, readConfig } from "../../../worker/config/config.ts";
import { builtInProfiles } from "../../../worker/sandbox/profile.ts";
import { type Clock, systemClock } from "../../../worker/support/clock.ts";
import { isCodeSettled } from "./settled-code.ts";
import { createLogger } from "../../../worker/telemetry/logger.ts";
import { createHost } from "../../../worker/wiring/host.ts";
import { Worker } from "../../../worker/worker.ts";
import { patience } from "../patience.ts";
import { quickPlace } from "../sandboxes/quick-place.ts";
import { sharedPreparations } from "./shared-preparations.ts";
import { awaitedLater } from "./awaited-later.ts";

export const namespace = "rig";
export const fixtureTools = fileURLToPath(new URL("../../fixtures/tools/", import.meta.url));
const nodeFixtureTools = fileURLToPath(new URL("../../fixtures/tools-node/", import.meta.url));

/** One tool of a rig's manifest, in the manifest's own words. */
export interface RigTool {
  readonly runtime?: "python" | "node" | "executable" | "go" | "code";
  readonly languages?: readonly string[];
  readonly module?: string;
  readonly executable?: string;
  readonly tool_dir?: string;
  readonly tools?: readonly string[];
  readonly resource_limits?: Readonly<Record<string, number>>;
  readonly function?: string;
  readonly class_name?: string;
  readonly timeout_seconds?: number;
  readonly sandbox_profile?: string;
  readonly limits?: Readonly<Record<string, number>>;
  readonly network?: "none" | "public" | "host" | { readonly allow: readonly unknown[] };
  readonly isolate?: boolean;
  readonly mounts?: readonly { readonly source: string; readonly target?: string }[];
  readonly devices?: readonly string[];
  readonly idempotent?: boolean;
  readonly start?: "auto" | "cold" | "pool" | "template";
  readonly warm?: { readonly min?: number; readonly max?: number };
  readonly env?: readonly string[];
  readonly package?: string;
  readonly version?: string;
  readonly requirements?: readonly string[];
  readonly requirements_file?: string;
  readonly lockfile?: string;
  readonly python?: string;
  readonly node?: string;
  readonly description?: string;
  readonly instructions?: string;
  readonly parameters?: object;
  readonly output_schema?: object;
  readonly config_schema?: object;
  readonly artifact_params?: object;
  readonly validate?: boolean;
  readonly coerce?: boolean;
  readonly gateway?: Readonly<Record<string, unknown>>;
  readonly allowed_callers?: readonly string[];
  readonly namespace?: string;
  readonly tags?: readonly string[];
}

/** A tool of runtime node: a file below the directory of Node tools, and what it exports. */
export function nodeTool(module: string, name: string, more: Partial<RigTool> = {}): RigTool {
  return { runtime: "node", module, function: name, ...more };
}

/** The same tool once for each profile, by the names `NAME_PROFILE`. */
export function nodeToolPerProfile(module: string, name: string): Record<string, RigTool> {
  const names = [...builtInProfiles.keys()];
  return Object.fromEntries(
    names.map((profile) => [
      `${name}_${profile}`,
      nodeTool(module, name, { sandbox_profile: profile }),
    ]),
  );
}

export interface RigOptions {
  /** By tool name; `module` is `misbehaving` unless given. */
  readonly tools: Readonly<Record<string, RigTool>>;
  /** Credentials of the manifest, in its own words. */
  readonly credentials?: Readonly<Record<string, unknown>>;
  /** Variables on top of the rig's own. */
  readonly environment?: Readonly<Record<string, string>>;
  /** Modules that the rig's tool directory holds beside the fixtures, by path below it. */
  readonly files?: Readonly<Record<string, string>>;
  /** The same for the directory of Node tools. */
  readonly nodeFiles?: Readonly<Record<string, string>>;
  /** Files of the directory of executables, which exists only with them. */
  readonly executables?: Readonly<Record<string, string | Uint8Array>>;
  /** Permissions of the tool directories; 0755 unless given. */
  readonly toolsDirMode?: number;
  /** Whether sandboxes may wait for calls; unless given they do not, and every call starts cold. */
  readonly isWarm?: boolean;
  /** The machine's unless given. */
  readonly clock?: Clock;
  /** Of another rig, which keeps it; a new one unless given. */
  readonly broker?: DevBroker;
}

/** A running worker with everything around it. */
export interface Rig extends AsyncDisposable {
  readonly broker: DevBroker;
  readonly worker: Worker;
  readonly agent: Agent;
  readonly config: Config;
  readonly store: ArtifactStore;
  readonly scope: ArtifactScope;
  readonly toolsDir: string;
  /** Made only for a rig with a tool of runtime node. */
  readonly nodeToolsDir: string;
  /** Made only for a rig with executables. */
  readonly executablesDir: string;
  readonly manifestPath: string;
  /** Log lines of the worker so far. */
  readonly logLines: readonly string[];
  call(tool: string, args?: ToolCall["args"], more?: Partial<ToolCall>): Promise<CallResult>;
  /**
   * Fulfils when at least so many sandboxes of a tool wait for calls, and its code counts as
   * settled: what was made of code that was written a moment before is given up once more. Only for
   * a rig that `isWarm`.
   */
  untilWaiting(tool: string, count?: number): Promise<void>;
}

/**
 * A temporary directory that a sandbox's own uid can reach, also where the test runner's TMPDIR is
 * private.
 */
export async function reachableDirectory(place = quickPlace): Promise<string> {
  const directory = await mkdtemp(join(place, "str-test-"));
  await chmod(directory, 0o755);
  return directory;
}

/** The environment of a worker that serves `manifestPath` on a broker. */
export function workerEnvironment(
  broker: DevBroker,
  base: string,
  manifestPath: string,
  toolsDir: string,
): Record<string, string> {
  return {
    SAM_NAMESPACE: namespace,
    DEV_BROKER_HOST: broker.host,
    DEV_BROKER_PORT: String(broker.port),
    CONNECT_RETRY_DELAY_MS: "200",
    MANIFEST_PATH: manifestPath,
    TOOLS_PYTHON_DIR: toolsDir,
    // Each tool would take a sandbox at the start.
    TOOLS_DESCRIBED_BY: "manifest",
    SANDBOX_WORK_DIR: join(base, "work"),
    PACKAGE_DIR: join(base, "environments"),
    // No test asks a registry unless it says so.
    PACKAGE_POLICY: "check",
    SANDBOX_MIN_FREE_DISK_MB: "1",
    ARTIFACT_SERVICE_TYPE: "filesystem",
    ARTIFACT_BASE_PATH: join(base, "artifacts"),
    HEALTH_PORT: "0",
    LOG_LEVEL: "debug",
  };
}

/** A manifest as text. */
export function manifestText(
  tools: RigOptions["tools"],
  credentials: RigOptions["credentials"] = {},
): string {
  const entries = Object.entries(tools).map(([name, tool]) => [
    name,
    tool.executable === undefined && tool.runtime !== "code"
      ? { module: "misbehaving", ...tool }
      : tool,
  ]);
  // JSON is YAML.
  return JSON.stringify(
    { version: 1, credentials, tools: Object.fromEntries(entries) },
    undefined,
    2,
  );
}

async function makeToolsDir(
  fixtures: string,
  directory: string,
  files: Readonly<Record<string, string>> = {},
  mode = 0o755,
): Promise<void> {
  await cp(fixtures, directory, { recursive: true });
  for (const [name, text] of Object.entries(files)) {
    const path = join(directory, name);
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, text);
  }
  await chmod(directory, mode);
}

/** Starts a rig. The caller owns it. */
export async function startRig(options: RigOptions): Promise<Rig> {
  await using owned = new AsyncDisposableStack();
  const base = await reachableDirectory();
  owned.defer(() => rm(base, { recursive: true, force: true }));
  const toolsDir = join(base, "tools");
  const nodeToolsDir = join(base, "tools-node");
  const executablesDir = join(base, "tools-executable");
  for (const [name, content] of Object.entries(options.executables ?? {})) {
    const path = join(executablesDir, name);
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, content, { mode: 0o755 });
  }
  const manifestPath = join(base, "manifest.yaml");
  await makeToolsDir(fixtureTools, toolsDir, options.files, options.toolsDirMode);
  if (Object.values(options.tools).some(needsNode))
    await makeToolsDir(nodeFixtureTools, nodeToolsDir, options.nodeFiles, options.toolsDirMode);
  await writeFile(manifestPath, manifestText(options.tools, options.credentials));

  const broker = options.broker ?? owned.use(await startDevBroker());
  const environment = {
    ...workerEnvironment(broker, base, manifestPath, toolsDir),
    TOOLS_NODE_DIR: nodeToolsDir,
    TOOLS_EXECUTABLE_DIR: executablesDir,
    WARM_MAX_MEMORY_MB: options.isWarm === true ? "512" : "0",
    ...options.environment,
  };
  const config = readConfig(environment);
  const logLines: string[] = [];
  const log = createLogger("debug", lineCollector(logLines));
  const { clock = systemClock } = options;
  const preparations = sharedPreparations;
  const host = { ...createHost(log, environment), clock, preparations };
  const worker = owned.use(new Worker(config, host));
  await worker.start(AbortSignal.timeout(30_000));
  const agent = owned.use(
    await Agent.connect(
      { host: broker.host, port: broker.port, namespace },
      AbortSignal.timeout(30_000),
    ),
  );
  const store = owned.use(await openStore(config.artifacts.store));
  const all = owned.move();
  return {
    broker,
    worker,
    agent,
    config,
    store,
    scope: { root: namespace, userId: "user-42", sessionId: "web-1" },
    toolsDir,
    nodeToolsDir,
    executablesDir,
    manifestPath,
    logLines,
    call: (tool, args = {}, more = {}) =>
      awaitedLater(
        agent.call({
          tool,
          args,
          userId: "user-42",
          sessionId: "web-1",
          timeoutSeconds: 30,
          ...more,
        }),
      ),
    untilWaiting: (tool, count = 1) => {
      const given = options.tools[tool] ?? {};
      const runtime =
        given.runtime === "code" ? firstInterpreter(given) : (given.runtime ?? "python");
      return untilWaiting(worker, tool, count, () => isCodeSettled(logLines, runtime));
    },
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}

function needsNode({ runtime, languages }: RigTool): boolean {
  return runtime === "node" || (runtime === "code" && languages?.join() !== "python");
}

/** Of programs, which those of other languages need not wait for. */
function firstInterpreter({ languages = ["python"] }: RigTool): string {
  return languages[0] === "python" ? "python" : "node";
}

/** Rejects when they do not wait in time, with what there is. */
async function untilWaiting(
  { starts }: Worker,
  tool: string,
  count: number,
  isSettled: () => boolean,
): Promise<void> {
  if (starts === undefined) throw new Error("the worker has not started");
  const untilMs = systemClock.monotonicMs() + patience.timeout;
  const waiting = (): number =>
    starts.stats.reduce((sum, pool) => sum + (pool.tool === tool ? pool.idle : 0), 0);
  while (!isSettled() || waiting() < count) {
    if (systemClock.monotonicMs() > untilMs) throw new Error(JSON.stringify(starts.stats));
    await systemClock.sleep(patience.interval);
  }
}

function lineCollector(lines: string[]): Writable {
  return new Writable({
    write(chunk: Buffer, _encoding, done) {
      lines.push(...chunk.toString().split("\n").filter(Boolean));
      done();
    },
  });
}
