/**
 * Node tools: program, tool directory, packages and runner as a sandbox sees them.
 */
import { chmod, lstat, mkdir } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import type { ToolEntry } from "../../manifest/manifest.ts";
import type { Profile } from "../../sandbox/profile.ts";
import type { ReadOnlyMount, SandboxBackend } from "../../sandbox/sandbox.ts";
import type { Compilation } from "./compile-cache.ts";
import { insidePaths } from "../inside-paths.ts";
import { SharedInstallations, installationFor } from "../installations.ts";
import { Interpreters } from "../interpreters.ts";
import { NodeProgram } from "./program.ts";
import type { Installation, PackageSource } from "../runner.ts";
import { type CodeLease, type CodePlaces, leaseCode } from "../tool-code.ts";
import { packagesVariable, toolEnvironment } from "../tool-environment.ts";
import { nodeModuleFiles, type SharedTools, shareTools } from "../visible-tools.ts";

const bytesPerMebibyte = 1024 * 1024;

/**
 * The part of a profile's memory that JavaScript objects may take. V8 goes beyond its limit by its
 * young generation and by what it copies while it collects; the rest is also for buffers and for
 * processes that a tool starts.
 */
const heapShare = 0.75;

/** The package `@babel/parser`, which only the runner inside loads, to describe a tool. */
const parserDir = dirname(createRequire(import.meta.url).resolve("@babel/parser/package.json"));
/** Where Node looks for packages. */
const modulesName = "node_modules";

/** What the surroundings of tools are opened with. */
export interface NodeSurroundingsOptions extends CodePlaces, PackageSource {
  /** Node program on the host (`SANDBOX_NODE_BIN`). */
  readonly nodeBin: string;
  /** Others that tools may name, by name (`SANDBOX_NODES`). */
  readonly named?: ReadonlyMap<string, string>;
  /** Directory with the tools' modules (`TOOLS_NODE_DIR`). */
  readonly toolsDir: string;
  /** The project's `tool-runner/node`. */
  readonly runnerDir: string;
  /** Directory for this process alone, which sandboxes can reach; its owner removes it. */
  readonly scratchDir: string;
  readonly backend: Pick<SandboxBackend, "share">;
  /** The worker's environment, for tools whose manifest entry allows them some of it. */
  readonly workerEnvironment: Readonly<Record<string, string | undefined>>;
}

/** What a tool's module is loaded with: equal variants compile it alike. */
export interface Surroundings extends Compilation {
  readonly program: NodeProgram;
  /** Whether nothing of the directory of tools is seen but the module. */
  readonly isolated: boolean;
  readonly installation: Installation | undefined;
  /** Packages and toolset: compiled code of former ones is not kept. */
  readonly state: string;
  readonly toolset?: NonNullable<ToolEntry["toolset"]>;
}

/** Surroundings of all Node tools. Their owner disposes them after the last sandbox. */
export class NodeSurroundings implements AsyncDisposable {
  readonly programs: Interpreters<NodeProgram>;
  /** The program of tools that name none. */
  readonly usual: NodeProgram;
  /** What a sandbox has besides where it describes a tool. */
  readonly describing: readonly ReadOnlyMount[];
  readonly #options: NodeSurroundingsOptions;
  readonly #installations: SharedInstallations;
  /** The tool runner. */
  readonly #runnerMounts: readonly ReadOnlyMount[];
  readonly #emptyDir: string;
  readonly #shared: AsyncDisposable;

  /** Asks the usual program who it is. Throws SandboxError. */
  static async open(options: NodeSurroundingsOptions): Promise<NodeSurroundings> {
    const { backend, nodeBin, runnerDir, scratchDir, named } = options;
    await using shared = new AsyncDisposableStack();
    const open = (program: string) => NodeProgram.open(program, backend);
    const usual = await open(nodeBin);
    const variable = "SANDBOX_NODES";
    const programs = shared.use(new Interpreters({ usual, variable, named, open }));
    const installations = shared.use(new SharedInstallations(backend));
    // Shared once: it does not change under a running worker.
    const { source: runnerSource } = shared.use(await backend.share(runnerDir));
    const { source: parserSource } = shared.use(await backend.share(parserDir));
    const emptyDir = join(scratchDir, "no-packages");
    await mkdir(emptyDir, { recursive: true });
    // mkdir's mode is subject to the umask.
    await chmod(emptyDir, 0o755);
    const sources = { runnerSource, parserSource, emptyDir };
    const parts = { options, usual, programs, installations, ...sources };
    return new NodeSurroundings({ ...parts, shared: shared.move() });
  }

  private constructor(parts: {
    readonly options: NodeSurroundingsOptions;
    readonly usual: NodeProgram;
    readonly programs: Interpreters<NodeProgram>;
    readonly installations: SharedInstallations;
    readonly runnerSource: string;
    readonly parserSource: string;
    readonly emptyDir: string;
    readonly shared: AsyncDisposable;
  }) {
    this.programs = parts.programs;
    this.usual = parts.usual;
    this.#options = parts.options;
    this.#installations = parts.installations;
    const targets = [insidePaths.runner, insidePaths.nodeModule];
    this.#runnerMounts = targets.map((target) => ({ source: parts.runnerSource, target }));
    this.describing = [{ source: parts.parserSource, target: insidePaths.nodeParser }];
    this.#emptyDir = parts.emptyDir;
    this.#shared = parts.shared;
  }

  /** Those of a tool. Throws SandboxError when its program or packages cannot be used. */
  async of(tool: ToolEntry, isolated: boolean): Promise<Surroundings> {
    const program = await this.programs.of(tool);
    const installation = installationFor(tool, this.#options);
    const { module, toolset } = tool;
    const state = [installation?.key, toolset?.name, toolset?.revision].join("\0");
    const variant = [isolated, program.program, state].join("\0");
    const of = { module, variant, program, isolated, installation, state };
    return toolset === undefined ? of : { ...of, toolset };
  }

  /** The mounts for them. The caller owns them. Throws SandboxError. */
  async share(of: Surroundings): Promise<SharedTools> {
    const { module, program, isolated, installation } = of;
    await using held = new AsyncDisposableStack();
    const code = held.use(leaseCode(of, this.#options));
    const only = isolated ? await nodeModuleFiles(code.directory, module) : undefined;
    const target = insidePaths.nodeTools;
    const tools = held.use(await shareTools(this.#options.backend, { code, target, only }));
    const mounts = [...program.mounts, ...this.#runnerMounts, ...tools.mounts];
    if (installation !== undefined) {
      const { source } = held.use(await this.#installations.share(installation));
      mounts.push({ source: join(source, modulesName), target: insidePaths.nodePackages });
      if (!isolated) mounts.push(...(await this.#hideOthers(code)));
    }
    const owned = held.move();
    return { mounts, [Symbol.asyncDispose]: () => owned.disposeAsync() };
  }

  /** @param own variables of the launch */
  environment(
    tool: Pick<ToolEntry, "env">,
    { program, installation }: Surroundings,
    own: Readonly<Record<string, string>>,
  ): ReadonlyMap<string, string> {
    const { nodePackages } = insidePaths;
    const directories = [dirname(program.executable)];
    if (installation !== undefined) directories.push(join(nodePackages, ".bin"));
    const variables = installation && { [packagesVariable]: nodePackages };
    const { workerEnvironment } = this.#options;
    return toolEnvironment(tool, directories, { ...own, ...variables }, workerEnvironment);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#shared[Symbol.asyncDispose]();
  }

  /** Nothing in place of the packages beside the tools, which Node would prefer. */
  async #hideOthers({ directory }: CodeLease): Promise<readonly ReadOnlyMount[]> {
    const stats = await lstat(join(directory, modulesName)).catch(() => undefined);
    const target = join(insidePaths.nodeTools, modulesName);
    return stats?.isDirectory() === true ? [{ source: this.#emptyDir, target }] : [];
  }
}

/**
 * For a Node that is forked. A child has no threads that V8 could give work to. The runner is
 * compiled at once, and stays so: else each child would compile what its call runs.
 */
export const forkFlags = [
  ...["--single-threaded", "--v8-pool-size=1"],
  ...["--no-lazy", "--no-flush-bytecode"],
] as const;

/** The command line of the tool runner. */
export function argvOf(
  { program }: Surroundings,
  { limits }: Profile,
  rest: readonly string[],
  flags: readonly string[] = [],
): readonly string[] {
  const heapMebibytes = Math.floor((limits.memoryBytes * heapShare) / bytesPerMebibyte);
  return [
    program.executable,
    `--max-old-space-size=${heapMebibytes}`,
    // No signal opens a debugger on the network that a tool may share with the host.
    "--disable-sigusr1",
    ...flags,
    join(insidePaths.runner, "main.js"),
    ...rest,
  ];
}
