/**
 * A backend whose sandboxes are parked before they get a command: a real runner waits in each of
 * them, and becomes the command when it is called.
 */
import { join } from "node:path";
import type { TestContext } from "vitest";
import {
  type AheadOfCalls,
  type Launch,
  type ParkedSandbox,
  type Sandbox,
  type SandboxBackend,
  SandboxError,
  type SandboxRequest,
  workDirInside,
} from "../../../worker/sandbox/sandbox.ts";
import { workDirNames } from "../../../worker/sandbox/work/work-dir.ts";
import { NodeProgram } from "../../../worker/runners/node/program.ts";
import { forkFlags } from "../../../worker/runners/node/surroundings.ts";
import { awayFromStdin } from "../../../worker/runners/node.ts";
import { openBackend } from "../../integration/sandbox/sandbox-host.ts";
import type { WhenOver } from "../shared.ts";

const project = join(import.meta.dirname, "../../..");
/**
 * Where the runner and its tool are inside: the tests put things of their own where they usually
 * are.
 */
const inside = { runner: "/sandbox/parked/runner", tools: "/sandbox/parked/tools" } as const;
const argsFile = join(workDirInside, workDirNames.args);

/** A runner that waits, as it is started inside. */
interface WaitingRunner {
  readonly directory: string;
  readonly module: string;
  /** Its command, up to how it waits. */
  readonly command: readonly string[];
  /** Where it is not that of the command. */
  readonly memoryBound?: "resident";
}

const python: WaitingRunner = {
  directory: join(project, "tool-runner/python"),
  module: "exec_call",
  command: ["/usr/bin/python3", "-I", "-B", join(inside.runner, "tool_runner/__main__.py")],
};

const node = (executable: string): WaitingRunner => ({
  directory: join(project, "tool-runner/node"),
  module: "exec-call.js",
  command: [
    ...[...awayFromStdin, executable, "--disable-sigusr1", ...forkFlags],
    join(inside.runner, "main.js"),
  ],
  // V8 reserves more than it uses.
  memoryBound: "resident",
});

/**
 * Parks a sandbox with a command that the runner is started by. What it returns owns all that was
 * made for it.
 */
export type Park = (
  ahead: AheadOfCalls,
  request: SandboxRequest,
  /** Starts the runner in one of its ways of waiting: `--park` or `--template`. */
  launch: (way: string) => Launch,
  signal: AbortSignal,
) => Promise<ParkedSandbox>;

/** Parks sandboxes as a pool does. */
export const parkInPool: Park = (ahead, request, launch, signal) =>
  ahead.park(request, launch("--park"), signal);

/** Parks each sandbox as a child of a template of its own, which ends with it. */
export const parkInTemplate: Park = async (ahead, request, launch, signal) => {
  await using held = new AsyncDisposableStack();
  const template = held.use(await ahead.openTemplate(request, launch("--template"), signal));
  const parked = held.use(await template.park(signal));
  const owned = held.move();
  const { backend, workDir, limits, enforcement, unenforced, lost, privateBytes } = parked;
  return {
    ...{ backend, workDir, limits, enforcement, unenforced, lost, privateBytes },
    locate: (path) => parked.locate(path),
    wake: (args) => parked.wake(args),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
};

/**
 * A bubblewrap backend whose sandboxes are parked. Skips the test where bubblewrap cannot make
 * sandboxes.
 */
export async function openParkedBackend(
  context: TestContext,
  park: Park,
  whenOver: WhenOver,
  runtime: "python" | "node" = "python",
): Promise<SandboxBackend> {
  const backend = await openBackend(context, {}, whenOver);
  await using opened = new AsyncDisposableStack();
  opened.use(backend);
  const program = opened.use(await NodeProgram.open(process.execPath, backend));
  const waiting = runtime === "node" ? node(program.executable) : python;
  const launch = (way: string): Launch => ({
    argv: [...waiting.command, way, waiting.module, inside.tools, argsFile],
  });
  const runner = opened.use(await backend.share(waiting.directory));
  const tools = opened.use(await backend.share(join(project, "test/fixtures/parked")));
  const mounts = [
    ...program.mounts,
    { source: runner.source, target: inside.runner },
    { source: tools.source, target: inside.tools },
  ];
  const owned = opened.move();
  return {
    scratchDir: backend.scratchDir,
    facts: (profile) => backend.facts(profile),
    share: (path) => backend.share(path),
    async acquire(request, signal) {
      const ahead = backend.aheadOf?.(request.profile);
      if (ahead === undefined) throw new Error("the backend does nothing ahead of calls");
      const { memoryBound = request.memoryBound } = waiting;
      const mounted = { ...request, memoryBound, mounts: [...mounts, ...request.mounts] };
      return sandboxOf(await park(ahead, mounted, launch, signal), waiting.module);
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

/** A parked sandbox in the shape of any other: it is woken with the command as its call. */
function sandboxOf(parked: ParkedSandbox, module: string): Sandbox {
  let isStarted = false;
  return {
    backend: parked.backend,
    workDir: parked.workDir,
    limits: parked.limits,
    enforcement: parked.enforcement,
    unenforced: parked.unenforced,
    locate: (path) => parked.locate(path),
    async start({ argv }) {
      if (isStarted) throw new SandboxError("a sandbox is started once");
      isStarted = true;
      return parked.wake(JSON.stringify(callOf(argv, module)));
    },
    [Symbol.asyncDispose]: () => parked[Symbol.asyncDispose](),
  };
}

function callOf(argv: readonly string[], module: string) {
  return {
    module,
    function: "become",
    args: { argv },
    result_file: join(workDirInside, workDirNames.result),
    output_dir: join(workDirInside, workDirNames.output),
    tools_dir: inside.tools,
  };
}
