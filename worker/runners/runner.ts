/**
 * The worker's half of a tool language: how a tool of that language is launched in a sandbox.
 */
import type { Invocation } from "../protocol/invocation.ts";
import type { Refusal } from "../protocol/refusal.ts";
import type { JsonObject } from "../support/json/json.ts";
import type { LimitName } from "../protocol/resource-limits.ts";
import type { ToolEntry } from "../manifest/manifest.ts";
import type { Profile } from "../sandbox/profile.ts";
import {
  type ExitReport,
  type Launch,
  type MemoryBound,
  type ReadOnlyMount,
  type Sandbox,
  workDirInside,
} from "../sandbox/sandbox.ts";
import { workDirNames } from "../sandbox/work/work-dir.ts";

/**
 * A tool, ready to be launched: what its sandbox mounts and sees. Disposed after the sandbox is
 * gone.
 */
export interface PreparedTool extends AsyncDisposable {
  readonly mounts: readonly ReadOnlyMount[];
  /** The whole environment inside. */
  readonly environment: ReadonlyMap<string, string>;
  readonly launch: Launch;
  /** Loads the tool and waits for its call, or undefined where the language has no way to. */
  readonly park?: Launch;
  /**
   * Loads the tool and makes sandboxes that wait for calls, or undefined where the language has no
   * way to.
   */
  readonly template?: Launch;
  /** Mounts that `launch` needs besides to describe the tool. */
  readonly describing?: readonly ReadOnlyMount[];
  readonly memoryBound: MemoryBound;
  /** Directory inside that the tool's module is loaded from. */
  readonly toolsPath: string;
  /**
   * The bound that the interpreter says it ended at, for languages that have no exception for it.
   */
  boundReached?(report: ExitReport): LimitName | undefined;
}

/** An input artifact as it lies in the work directory. */
export interface StagedArtifact {
  /** Path inside the sandbox. */
  readonly path: string;
  readonly filename: string;
  readonly mimeType: string;
  readonly version: number;
}

/**
 * Packages that are installed for a tool alone. Python: `DIR/packages`, as `pip install --target`
 * leaves it. Node: `DIR/node_modules`.
 */
export interface Installation {
  /** Directory on the host. */
  readonly dir: string;
  /** Another content has another key. */
  readonly key: string;
}

/** The packages of a tool, or undefined for a tool that sees those of its interpreter. */
export type InstallationOf = (tool: ToolEntry) => Installation | undefined;

/** Where a runner gets the packages of tools from. */
export interface PackageSource {
  /** Without it no tool has packages of its own. */
  readonly installationOf?: InstallationOf;
  /** Whether a tool that names packages runs with an installation of them only. */
  readonly installsPackages?: boolean;
}

/** The interpreter of a tool, for what installs packages for it. */
export interface Interpreter {
  /** Its program on the host. With a virtual environment, that of the environment's base. */
  readonly executable: string;
  /** What tools without packages of their own run, which sees what is installed for it. */
  readonly program: string;
  /** What has to be mounted for it where only /usr is there, each at its own path. */
  readonly mounts: readonly ReadOnlyMount[];
  /**
   * Implementation, version, binary interface and platform: what is installed for one interpreter
   * works with those of the same identity.
   */
  readonly identity: string;
}

/** A place on the host that tools are loaded from. */
export interface CodeSource {
  readonly path: string;
  /** What tells that it changed: all below it, or itself and the entries directly in it. */
  readonly depth: "tree" | "listing";
}

/** A tool language, shared by all its tools. Its owner disposes it after the last call. */
export interface ToolRunner extends AsyncDisposable {
  readonly runtime: ToolEntry["runtime"];
  /**
   * Everything that its tools may load: their own modules, the interpreters in use and what is
   * installed with these. Grows with the interpreters.
   */
  readonly sources: readonly CodeSource[];
  /** One line for the operator: interpreter and version. */
  readonly description: string;
  /** Prepares a call with the tool's present source. Throws SandboxError. */
  prepare(tool: ToolEntry, profile: Profile): Promise<PreparedTool>;
  /** Why a tool cannot be served by this host, or undefined when it can. */
  refuse(tool: ToolEntry, signal: AbortSignal): Promise<Refusal | undefined>;
  /**
   * Key of the tool's installation; undefined without one. Idle sandboxes with another are
   * outdated.
   */
  installationKeyOf?(tool: ToolEntry): string | undefined;
  /** The interpreter of a tool. Throws SandboxError when it cannot be used. */
  interpreterOf?(tool: ToolEntry): Promise<Interpreter>;
  /**
   * Makes later calls of a served tool quicker, in the background, where the language has a way to.
   */
  warm?(tool: ToolEntry): void;
}

/** A sandbox as `runner_args.json` names its parts. */
export interface RunnerPlaces extends Pick<Sandbox, "locate"> {
  readonly tools: string;
  /** Undefined where the sandbox has no gateway. */
  readonly gateway?: RunnerGateway | undefined;
}

/** The channel of a gateway as its runner knows it. */
export interface RunnerGateway {
  /** What the runner inherits, or connects to. */
  readonly channel: { readonly fd: number } | { readonly path: string };
  /** Calls that the worker reads before it answers one. */
  readonly maxConcurrentCalls: number;
}

/**
 * The content of `runner_args.json` (tool-runner/PROTOCOL.md), the same for every language.
 *
 * @param inside the directory of tools as every sandbox has it, what this one calls such a path,
 *   and its gateway
 * @param limits the largest `result.json` that the worker will read, and the epoch milliseconds at
 *   which the time limit ends the tool
 */
export function runnerArgs(
  tool: ToolEntry,
  invocation: Pick<
    Invocation,
    "args" | "toolConfig" | "taskId" | "caller" | "traceparent" | "tracestate"
  >,
  artifacts: ReadonlyMap<string, StagedArtifact>,
  inside: RunnerPlaces,
  limits: { readonly maxResultBytes: number; readonly deadlineMs?: number },
): JsonObject {
  const inWork = (name: string): string => inside.locate(`${workDirInside}/${name}`);
  const { gateway } = inside;
  const inputs = [...artifacts].map(
    ([parameter, input]) => [parameter, { ...input, path: inside.locate(input.path) }] as const,
  );
  return {
    ...calledOf(tool, invocation.args),
    args: invocation.args,
    tool_config: invocation.toolConfig,
    artifact_paths: Object.fromEntries(inputs.map(([name, { path }]) => [name, path])),
    artifact_metadata: Object.fromEntries(
      inputs.map(([name, { path, filename, mimeType, version }]) => [
        name,
        { filename, mime_type: mimeType, version, local_path: path },
      ]),
    ),
    status_pipe: inWork(workDirNames.status),
    result_file: inWork(workDirNames.result),
    output_dir: inWork(workDirNames.output),
    tools_dir: inside.locate(inside.tools),
    task_id: invocation.taskId,
    user_id: invocation.caller.userId,
    session_id: invocation.caller.sessionId,
    app_name: invocation.caller.appName,
    max_result_bytes: limits.maxResultBytes,
    ...(limits.deadlineMs !== undefined && { deadline_ms: limits.deadlineMs }),
    ...(invocation.traceparent !== undefined && { traceparent: invocation.traceparent }),
    ...(invocation.tracestate !== undefined && { tracestate: invocation.tracestate }),
    ...(gateway && {
      gateway: { ...gateway.channel, max_concurrent_calls: gateway.maxConcurrentCalls },
    }),
  };
}

/** What the runner has to call or run, and in an executable the tool by the name that it knows. */
function calledOf({ module, callable }: ToolEntry, args: JsonObject): JsonObject {
  const { kind, name, provides } = callable;
  switch (kind) {
    case "function":
      return { module, function: name };
    case "class":
      return { module, class_name: name };
    case "provider":
      return { module, class_name: name, tool_name: provides ?? "" };
    case "program":
      return { tool_name: name };
    case "code":
      return { program: { language: args["language"] ?? "" } };
  }
}
