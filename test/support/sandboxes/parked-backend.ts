/**
 * A backend whose sandboxes are parked before they get a command: the real Python runner waits in
 * each of them, and becomes the command when it is called.
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
import { openBackend } from "../../integration/sandbox/sandbox-host.ts";
import type { WhenOver } from "../shared.ts";

const project = join(import.meta.dirname, "../../..");
/**
 * Where the runner and its tool are inside: the tests put things of their own where they usually
 * are.
 */
const inside = { runner: "/sandbox/parked/runner", tools: "/sandbox/parked/tools" } as const;
const module = "exec_call";

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
): Promise<SandboxBackend> {
  const backend = await openBackend(context, {}, whenOver);
  await using opened = new AsyncDisposableStack();
  opened.use(backend);
  const runner = opened.use(await backend.share(join(project, "tool-runner/python")));
  const tools = opened.use(await backend.share(join(project, "test/fixtures/parked")));
  const mounts = [
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
      const mounted = { ...request, mounts: [...mounts, ...request.mounts] };
      return sandboxOf(await park(ahead, mounted, launch, signal));
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

function launch(way: string): Launch {
  const runner = join(inside.runner, "tool_runner/__main__.py");
  const argsFile = join(workDirInside, workDirNames.args);
  return { argv: ["/usr/bin/python3", "-I", "-B", runner, way, module, inside.tools, argsFile] };
}

/** A parked sandbox in the shape of any other: it is woken with the command as its call. */
function sandboxOf(parked: ParkedSandbox): Sandbox {
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
      return parked.wake(JSON.stringify(callOf(argv)));
    },
    [Symbol.asyncDispose]: () => parked[Symbol.asyncDispose](),
  };
}

function callOf(argv: readonly string[]) {
  return {
    module,
    function: "become",
    args: { argv },
    result_file: join(workDirInside, workDirNames.result),
    output_dir: join(workDirInside, workDirNames.output),
    tools_dir: inside.tools,
  };
}
