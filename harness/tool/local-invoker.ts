/**
 * The worker's own path of a call, for one tool of the command line or for those of a manifest: its
 * sandbox, its runners, its limits, and no broker.
 */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { wireInvoker } from "../../worker/app.ts";
import { type Foundation, createHost, openFoundation } from "../../worker/foundation.ts";
import { artifactScope } from "../../worker/artifacts/scope.ts";
import {
  type Config,
  ConfigError,
  type Environment,
  readConfig,
} from "../../worker/config/config.ts";
import type { Invoker } from "../../worker/invocation/invoker.ts";
import { type Manifest, ManifestError } from "../../worker/manifest/manifest.ts";
import type { Caller } from "../../worker/protocol/invocation.ts";
import { type Profiles, builtInProfiles } from "../../worker/sandbox/profile.ts";
import { ProfilesError } from "../../worker/sandbox/profiles-file.ts";
import { SandboxError } from "../../worker/sandbox/sandbox.ts";
import { type Logger, createLogger } from "../../worker/telemetry/logger.ts";
import { CallArtifacts } from "../artifacts.ts";
import { CommandError, type Context, UsageError, withCauses } from "../context.ts";
import { showLogLine } from "../../worker/telemetry/pretty-log.ts";
import type { Programs } from "../prerequisites.ts";
import type { ToolsLayout } from "../tools-layout.ts";
import { type SandboxObserver, observed } from "./debug/observed-backend.ts";
import { type DebugOptions, debugged } from "./debug/debugged-backend.ts";
import { profilesVariable } from "./profiles.ts";
import type { Target } from "./target.ts";

/** What the one tool is called. */
export const toolName = "tool";

const namespace = "tool-run";

/** What a manifest calls it. */
const profileField = "sandbox_profile";

/** Variables of the worker that a sandbox may say are wrong. */
const variableOf: Readonly<Record<string, string>> = {
  allowUnsafe: "SANDBOX_ALLOW_UNSAFE",
  minimum: "SANDBOX_MINIMUM",
  bwrapBin: "SANDBOX_BWRAP_BIN",
  pythonBin: "SANDBOX_PYTHON_BIN",
  nodeBin: "SANDBOX_NODE_BIN",
};

/** Variables of the worker that say how sandboxes are made; everything else is decided here. */
const passedOn = [...Object.values(variableOf), "SANDBOX_UID", profilesVariable];

/** Where calls run, and for whom. */
interface Surroundings {
  readonly caller: Caller;
  readonly programs: Programs;
  /** A directory that sandboxes can reach; whoever made it removes it afterwards. */
  readonly home: string;
  readonly observer: SandboxObserver;
}

/** One tool. */
export interface LocalInvokerOptions extends Surroundings {
  readonly target: Target;
  readonly profile: string;
  /** Names of our own environment variables that the tool may see. */
  readonly env: readonly string[];
  /** Undefined in a sandbox. */
  readonly debug: DebugOptions | undefined;
}

/** The tools of a manifest. */
export interface ManifestInvokerOptions extends Surroundings {
  readonly layout: ToolsLayout;
}

/** An open invoker. Its owner disposes it. */
export interface LocalInvoker extends AsyncDisposable {
  readonly invoker: Invoker;
  readonly manifest: Manifest;
  /** Of the caller, in memory. */
  readonly artifacts: CallArtifacts;
  readonly log: Logger;
}

/**
 * Opens it for a tool. Throws UsageError for what the options or the environment say, CommandError
 * for what the host refuses.
 */
export async function openLocalInvoker(
  options: LocalInvokerOptions,
  context: Context,
): Promise<LocalInvoker> {
  const { target, home, debug } = options;
  const manifestPath = join(home, "manifest.yaml");
  await writeFile(manifestPath, manifestText(options));
  // The other language has no directory, and so is not opened.
  const directoryOf = (runtime: Target["runtime"]): string =>
    target.runtime === runtime ? target.toolsDir : join(home, "none");
  const layout = {
    manifestPath,
    pythonDir: directoryOf("python"),
    nodeDir: directoryOf("node"),
  };
  const settings = debug && { SANDBOX_ALLOW_UNSAFE: "1" };
  const config = readSettings(layout, options, context.environment, settings);
  const given = debug && profilesToDebug(options.profile);
  // The manifest is ours, so its places mean nothing to anybody.
  return await open(config, given, options, debug, context).catch((error: unknown) => {
    throw error instanceof ManifestError
      ? new UsageError(problemsOf(error), { cause: error })
      : error;
  });
}

/** Opens it for a manifest. Throws as for a tool, and UsageError for what the manifest says. */
export async function openManifestInvoker(
  options: ManifestInvokerOptions,
  context: Context,
): Promise<LocalInvoker> {
  const config = readSettings(options.layout, options, context.environment);
  return await open(config, undefined, options, undefined, context).catch((error: unknown) => {
    throw error instanceof ManifestError ? new UsageError(error.message, { cause: error }) : error;
  });
}

async function open(
  config: Config,
  profiles: Profiles | undefined,
  { caller, observer }: Surroundings,
  debug: DebugOptions | undefined,
  context: Context,
): Promise<LocalInvoker> {
  const log = createLogger("warn", { write: (line) => showLogLine(line.trimEnd(), context.err) });
  const host = createHost(log, context.environment);
  await using stack = new AsyncDisposableStack();
  const foundation = stack.use(await openParts(config, host, context.signal, profiles));
  const backend = debug ? debugged(foundation.backend, debug) : foundation.backend;
  const { invoker, starts } = wireInvoker(config, host, {
    ...foundation,
    backend: observed(backend, observer),
  });
  stack.use(starts);
  const scope = artifactScope(config.artifacts.scope, caller);
  const owned = stack.move();
  return {
    invoker,
    manifest: foundation.catalog.manifest,
    artifacts: new CallArtifacts(foundation.store, scope),
    log,
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

/** The profile without what isolates: nobody can debug through that. */
function profilesToDebug(name: string): Profiles {
  const profile = builtInProfiles.get(name);
  if (profile === undefined) throw new UsageError(`there is no profile ${name}`);
  return new Map([[name, { ...profile, backend: "host" }]]);
}

/** JSON is YAML. The manifest names the profile, because a request alone cannot widen it. */
function manifestText({ target, profile, env }: LocalInvokerOptions): string {
  const { runtime, module, callable } = target;
  const entry = {
    runtime,
    module,
    [callable.kind === "class" ? "class_name" : "function"]: callable.name,
    [profileField]: profile,
    env,
  };
  return JSON.stringify({ version: 1, tools: { [toolName]: entry } }, undefined, 2);
}

function readSettings(
  { manifestPath, pythonDir, nodeDir }: ToolsLayout,
  { programs, home }: Surroundings,
  own: Environment,
  more: Environment = {},
): Config {
  try {
    return readConfig({
      SANDBOX_BWRAP_BIN: programs.bwrapBin,
      SANDBOX_PYTHON_BIN: programs.pythonBin,
      ...Object.fromEntries(passedOn.flatMap((name) => (own[name] ? [[name, own[name]]] : []))),
      SAM_NAMESPACE: namespace,
      DEV_BROKER_HOST: "none",
      MANIFEST_PATH: manifestPath,
      TOOLS_PYTHON_DIR: pythonDir,
      TOOLS_NODE_DIR: nodeDir,
      SANDBOX_WORK_DIR: join(home, "work"),
      SANDBOX_MIN_FREE_DISK_MB: "0",
      ...more,
    });
  } catch (error) {
    if (error instanceof ConfigError) throw new UsageError(error.message, { cause: error });
    throw error;
  }
}

function problemsOf({ problems }: ManifestError): string {
  const lines = problems.map(({ field = "tool", message }) => {
    return `${field === profileField ? "--profile" : field}: ${message}`;
  });
  return lines.join("\n");
}

async function openParts(
  config: Config,
  host: Parameters<typeof openFoundation>[1],
  signal: AbortSignal,
  given: Profiles | undefined,
): Promise<Foundation> {
  try {
    return await openFoundation(config, host, signal, given);
  } catch (error) {
    if (error instanceof ProfilesError) throw new UsageError(error.message, { cause: error });
    if (error instanceof SandboxError) {
      const variable = error.setting && variableOf[error.setting];
      const prefix = variable === undefined ? "" : `${variable}: `;
      const text = withCauses(error).join("\n  because: ");
      throw new CommandError(`${prefix}${text}`, { cause: error });
    }
    throw error;
  }
}
