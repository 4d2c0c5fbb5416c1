/**
 * What is timed: from the floor over bare sandboxes to whole calls, each row one part more than the one before.
 */
import { chmod, mkdtemp, rm } from "node:fs/promises";
import { join } from "node:path";
import { Agent } from "../harness/agent.ts";
import { type DevBroker, startDevBroker } from "../harness/dev-broker.ts";
import { namespace, workerEnvironment } from "../test/support/rig.ts";
import { WorkerProcess } from "../test/support/worker-process.ts";
import { type Foundation, createHost, openFoundation, wireInvoker } from "../worker/app.ts";
import { readConfig } from "../worker/config.ts";
import type { Invocation } from "../worker/protocol/invocation.ts";
import { bwrapOptions } from "../worker/sandbox/bubblewrap/argv.ts";
import { type BubblewrapBackend, openBubblewrap } from "../worker/sandbox/bubblewrap/backend.ts";
import { encodeArgs } from "../worker/sandbox/bubblewrap/process.ts";
import { type Profile, builtInProfiles } from "../worker/sandbox/profile.ts";
import type { ReadOnlyMount } from "../worker/sandbox/sandbox.ts";
import { startSubprocess } from "../worker/sandbox/subprocess.ts";
import { systemClock } from "../worker/support/clock.ts";
import { newId } from "../worker/support/ids.ts";
import { createLogger } from "../worker/telemetry/logger.ts";
import { openFloor } from "./floor.ts";
import { type Row, inFlight } from "./measure.ts";
import { hardeningRows } from "./report.ts";

/** Milliseconds within which everything must be up. */
const startTimeoutMs = 60_000;

/** Seconds that a call may take. */
const callTimeoutSeconds = 30;

/** Host uid of sandboxes when this runs as root, as the worker's default. */
const sandboxUid = 60_001;

/** Everything that is timed, and what it needs. The caller disposes it. */
export interface Bench extends AsyncDisposable {
  readonly rows: readonly Row[];
  /** Name of the row that the others are compared with. */
  readonly baseline: string;
  /** What the hardened sandboxes have of control groups, and how long they take to join one. */
  readonly controlGroups: string;
}

/** Starts broker, worker, agent, and a spine of our own without a broker. */
export async function openBench(): Promise<Bench> {
  await using owned = new AsyncDisposableStack();
  const base = await mkdtemp("/var/tmp/str-bench-");
  owned.defer(() => rm(base, { recursive: true, force: true }));
  await chmod(base, 0o777);
  const signal = AbortSignal.timeout(startTimeoutMs);

  const floor = owned.use(await openFloor(inFlight));
  const broker = owned.use(await startDevBroker());
  const environment = benchEnvironment(broker, base);
  const config = readConfig({ ...environment, SANDBOX_WORK_DIR: join(base, "own") });
  const host = createHost(createLogger("silent", 2), {});
  const foundation = owned.use(await openFoundation(config, host, signal));
  const { invoker } = wireInvoker(config, host, foundation);

  owned.use(new WorkerProcess(environment));
  const agent = owned.use(
    await Agent.connect({ host: broker.host, port: broker.port, namespace }, signal),
  );
  await agent.whenServed("python_light", signal);

  const hardened = owned.use(await openSandboxes(base, false));
  const guarded = owned.use(await openSandboxes(base, true));
  const python = await bareInterpreter(foundation, "python_light", base, owned);
  const node = await bareInterpreter(foundation, "node_light", base, owned);
  const cold = (tool: string) => async (): Promise<void> => {
    const { signal: never } = new AbortController();
    const context = { signal: never, waitSignal: never, log: host.log, onStatus: () => {} };
    const outcome = await invoker.invoke(invocationOf(tool), context);
    if (outcome.kind !== "success") throw new Error(JSON.stringify(outcome));
  };
  const endToEnd = (tool: string) => async (): Promise<void> => {
    const result = await agent.call({ tool, args: {}, timeoutSeconds: callTimeoutSeconds });
    if (result.kind !== "success") throw new Error(JSON.stringify(result));
  };
  const all = owned.move();
  return {
    baseline: "bwrap + python",
    controlGroups: describeGroups(hardened),
    rows: [
      { name: "posix_spawn /bin/true", run: () => floor.run() },
      { name: "bwrap + true", run: () => runInSandbox(base, ["/usr/bin/true"], []) },
      { name: hardeningRows.from, run: () => runPlainly(base) },
      { name: hardeningRows.to, run: () => runHardened(hardened) },
      { name: hardeningRows.toByGuard, run: () => runHardened(guarded) },
      { name: "bwrap + python", run: () => python("-c", "pass") },
      { name: "bwrap + node", run: () => node("-e", "0") },
      { name: "cold start, Python", run: cold("python_light") },
      { name: "cold start, JavaScript", run: cold("node_light") },
      { name: "cold start, TypeScript", run: cold("node_typed") },
      { name: "end to end, Python", run: endToEnd("python_light") },
      { name: "end to end, JavaScript", run: endToEnd("node_light") },
      { name: "end to end, TypeScript", run: endToEnd("node_typed") },
    ],
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}

/** Sandboxes as a worker has them, or as it has them where there are no control groups. */
function openSandboxes(base: string, withoutCgroups: boolean): Promise<BubblewrapBackend> {
  const report = (error: unknown): void => console.error(error);
  return openBubblewrap({
    bwrapBin: "/usr/bin/bwrap",
    workBase: join(base, withoutCgroups ? "guarded" : "hardened"),
    uid: process.getuid?.() === 0 ? sandboxUid : undefined,
    clock: systemClock,
    newId,
    withoutCgroups,
    onRemoveFailed: report,
    onGuardLost: report,
  });
}

function describeGroups({ cgroups: found }: BubblewrapBackend): string {
  if (found?.cgroups === undefined) return "no control groups";
  const { description, joinMs } = found.cgroups;
  return `${description}, joined in ${joinMs.toFixed(1)} ms`;
}

function benchEnvironment(broker: DevBroker, base: string): Record<string, string> {
  const tools = new URL("tools/", import.meta.url).pathname;
  return {
    ...workerEnvironment(broker, base, join(tools, "manifest.yaml"), join(tools, "python")),
    TOOLS_NODE_DIR: join(tools, "node"),
    SANDBOX_MAX_CONCURRENT: String(inFlight),
    LOG_LEVEL: "warn",
  };
}

/** A call as the handler hands it to the spine. */
function invocationOf(toolName: string): Invocation {
  return {
    id: "bench",
    taskId: "bench",
    toolName,
    args: {},
    toolConfig: {},
    caller: { appName: "bench", userId: "bench", sessionId: "bench" },
    references: new Map(),
    preloaded: new Map(),
    timeoutSeconds: callTimeoutSeconds,
    requestedProfile: undefined,
    replyTo: "bench",
    statusTo: undefined,
    sentAtMs: Date.now(),
  };
}

/** The interpreter of a tool's language in a bare sandbox that sees what the tool would see. */
async function bareInterpreter(
  { catalog, runners }: Foundation,
  toolName: string,
  workDir: string,
  owned: AsyncDisposableStack,
): Promise<(...argv: string[]) => Promise<void>> {
  const tool = catalog.resolve(toolName);
  const runner = tool === undefined ? undefined : runners.get(tool.runtime);
  if (tool === undefined || runner === undefined) throw new Error(`${toolName} is not served`);
  const prepared = owned.use(await runner.prepare(tool, standardProfile()));
  const [program = ""] = prepared.launch.argv;
  return (...argv) => runInSandbox(workDir, [program, ...argv], prepared.mounts);
}

function standardProfile(): Profile {
  const profile = builtInProfiles.get("standard");
  if (profile === undefined) throw new Error("no standard profile");
  return profile;
}

/** A sandbox of ours with all that belongs to it, from acquisition to the removal of its work directory. */
async function runHardened(backend: BubblewrapBackend): Promise<void> {
  const { signal } = new AbortController();
  const request = {
    profile: standardProfile(),
    memoryBound: "address-space",
    mounts: [],
    devices: [],
    environment: new Map([["PATH", "/usr/bin"]]),
  } as const;
  await using sandbox = await backend.acquire(request, signal);
  const execution = await sandbox.start({ argv: ["/usr/bin/true"] });
  const { exitCode, stderr } = await execution.exited;
  if (exitCode !== 0) throw new Error(stderr.text);
}

/** The command line of the design document, section 7, for the profile `standard`: what hardening is compared with. */
async function runPlainly(workDir: string): Promise<void> {
  const namespaces = ["--unshare-pid", "--unshare-ipc", "--unshare-uts"];
  const files = ["--ro-bind", "/", "/", "--tmpfs", "/tmp", "--bind", workDir, workDir];
  await runBwrap([
    ...["--die-with-parent", "--new-session", ...namespaces, ...files, "--chdir", workDir],
    ...["--", "/usr/bin/true"],
  ]);
}

/** bubblewrap with the standard profile's options, and nothing of ours around it: no limits, no filter, no clean-up. */
async function runInSandbox(
  workDir: string,
  command: readonly string[],
  mounts: readonly ReadOnlyMount[],
): Promise<void> {
  const options = bwrapOptions({
    profile: standardProfile(),
    proc: "fresh",
    limitsNested: true,
    namesHost: true,
    systemDirectories: ["bin", "sbin", "lib", "lib64"].map((name) => ({
      path: `/${name}`,
      linkTarget: `usr/${name}`,
    })),
    workDir,
    mounts,
    devices: [],
    environment: new Map([["PATH", "/usr/bin"]]),
  });
  await runBwrap(["--args", "3", "--", ...command], [encodeArgs(options)]);
}

async function runBwrap(argv: readonly string[], inputs: readonly string[] = []): Promise<void> {
  const child = await startSubprocess({
    file: "/usr/bin/bwrap",
    argv,
    env: {},
    uid: process.getuid?.() === 0 ? sandboxUid : undefined,
    inputs,
  });
  const { exitCode } = await child.exited;
  await child.closed;
  if (exitCode !== 0) throw new Error(`${argv.join(" ")}: ${child.output().stderr.text}`);
}
