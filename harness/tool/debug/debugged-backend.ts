/**
 * A backend whose commands have this program's terminal, and neither limits nor isolation: so a
 * debugger can be used.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { Readable } from "node:stream";
import type { Environment } from "../../../worker/config/config.ts";
import type {
  Execution,
  ExitReport,
  Launch,
  ReadOnlyMount,
  Sandbox,
  SandboxBackend,
  SandboxRequest,
} from "../../../worker/sandbox/sandbox.ts";
import { insidePaths } from "../../../worker/runners/inside-paths.ts";
import { CommandError } from "../../context.ts";

/** Variables without which a terminal is hard to use. */
const terminalVariables = ["TERM", "LANG", "LC_ALL", "COLUMNS", "LINES"];

const toolsTargets: readonly string[] = [insidePaths.pythonTools, insidePaths.nodeTools];

/** How to debug. */
export interface DebugOptions {
  /**
   * Where Node listens for a debugger, and waits for it; undefined for a tool that asks for one
   * itself.
   */
  readonly inspectPort: number | undefined;
  /** Absolute. */
  readonly toolsDir: string;
  /** Of this program, for what is said of its terminal. */
  readonly environment: Environment;
}

/**
 * The `host` backend with its commands on our terminal, as our user. The inner one stays its
 * owner's.
 */
export function debugged(backend: SandboxBackend, options: DebugOptions): SandboxBackend {
  // Not a copy of the tools, where sandboxes of another user need one: breakpoints are set in the
  // files themselves.
  const inPlace = (mount: ReadOnlyMount): ReadOnlyMount =>
    toolsTargets.includes(mount.target) ? { ...mount, source: options.toolsDir } : mount;
  return {
    scratchDir: backend.scratchDir,
    facts: (profile) => backend.facts(profile),
    share: (directory) => backend.share(directory),
    acquire: async (given, signal) => {
      const request = { ...given, mounts: given.mounts.map(inPlace) };
      const sandbox = await backend.acquire(request, signal);
      return {
        backend: sandbox.backend,
        workDir: sandbox.workDir,
        limits: sandbox.limits,
        enforcement: sandbox.enforcement,
        unenforced: sandbox.unenforced,
        locate: (path) => sandbox.locate(path),
        start: (launch) => start(sandbox, request, launch, options),
        [Symbol.asyncDispose]: () => sandbox[Symbol.asyncDispose](),
      };
    },
    [Symbol.asyncDispose]: () => backend[Symbol.asyncDispose](),
  };
}

async function start(
  sandbox: Sandbox,
  request: SandboxRequest,
  launch: Launch,
  { inspectPort, environment }: DebugOptions,
): Promise<Execution> {
  const [file = "", ...argv] = launch.argv.map((word) => sandbox.locate(word));
  const inspect = inspectPort === undefined ? [] : [`--inspect-wait=127.0.0.1:${inspectPort}`];
  const locateAll = (list: string): string =>
    list
      .split(":")
      .map((path) => sandbox.locate(path))
      .join(":");
  const inside = [...request.environment].map(([name, value]) => [name, locateAll(value)]);
  const ofTerminal = terminalVariables.flatMap((name) =>
    environment[name] === undefined ? [] : [[name, environment[name]]],
  );
  const child = spawn(file, [...inspect, ...argv], {
    cwd: sandbox.workDir.path,
    env: Object.fromEntries([...ofTerminal, ...inside]) as Record<string, string>,
    stdio: "inherit",
  });
  const exited = once(child, "exit");
  try {
    await once(child, "spawn");
  } catch (error) {
    exited.catch(() => undefined);
    throw new CommandError(`cannot start ${file}: ${String(error)}`, { cause: error });
  }
  return new TerminalExecution(child, exited);
}

/** A command on the terminal, which has what it prints. */
class TerminalExecution implements Execution {
  readonly exited: Promise<ExitReport>;
  readonly stdin = undefined;
  readonly gateway = undefined;
  readonly stdout = Readable.from([]);
  readonly stderr = Readable.from([]);
  readonly #child: ChildProcess;

  constructor(child: ChildProcess, exited: Promise<unknown[]>) {
    const startMs = performance.now();
    const nothing = { text: "", droppedBytes: 0 };
    this.#child = child;
    this.exited = exited.then(([code, signal]) => ({
      started: true,
      exitCode: (code as number | null) ?? undefined,
      signal: (signal as string | null) ?? undefined,
      exceeded: undefined,
      usage: {
        wallMs: performance.now() - startMs,
        cpuMs: undefined,
        peakMemoryBytes: undefined,
        peakProcesses: undefined,
      },
      stdout: nothing,
      stderr: nothing,
    }));
  }

  async stop(graceMs: number): Promise<ExitReport> {
    this.#child.kill("SIGTERM");
    const kill = setTimeout(() => this.#child.kill("SIGKILL"), graceMs);
    try {
      return await this.exited;
    } finally {
      clearTimeout(kill);
    }
  }

  end(): void {
    this.#child.kill("SIGKILL");
  }
}
