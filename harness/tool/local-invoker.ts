/**
 * The worker's own path of a call for one tool of the command line: its sandbox, its runners, its
 * limits, and no broker.
 */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { wireInvoker } from "../../worker/app.ts";
import { type Foundation, type Host, createHost, openFoundation } from "../../worker/foundation.ts";
import { artifactScope } from "../../worker/artifacts/scope.ts";
import {
  type Config,
  ConfigError,
  type Environment,
  readConfig,
} from "../../worker/config/config.ts";
import type { Invoker } from "../../worker/invocation/invoker.ts";
import { ManifestError } from "../../worker/manifest/manifest.ts";
import type { Caller } from "../../worker/protocol/invocation.ts";
import { type Profiles, builtInProfiles } from "../../worker/sandbox/profile.ts";
import { ProfilesError } from "../../worker/sandbox/profiles-file.ts";
import { SandboxError } from "../../worker/sandbox/sandbox.ts";
import { type Logger, createLogger } from "../../worker/telemetry/logger.ts";
import { CallArtifacts } from "../artifacts.ts";
import { CommandError, type Context, UsageError, withCauses } from "../context.ts";
import { showLogLine } from "../../worker/telemetry/pretty-log.ts";
import type { Programs } from "../prerequisites.ts";
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

/** The one tool, and what its sandboxes are made with. */
export interface LocalToolOptions {
  readonly target: Target;
  readonly profile: string;
  /** Names of our own environment variables that the tool may see. */
  readonly env: readonly string[];
  readonly programs: Programs;
  /** A directory that sandboxes can reach; whoever made it removes it afterwards. */
  readonly home: string;
  /** Undefined in a sandbox. */
  readonly debug: DebugOptions | undefined;
}

/** What is to be run, and where. */
export interface LocalInvokerOptions extends LocalToolOptions {
  readonly caller: Caller;
  readonly observer: SandboxObserver;
}

/** A foundation whose manifest has the one tool. Its owner disposes it. */
export interface LocalFoundation extends AsyncDisposable {
  readonly config: Config;
  readonly host: Host;
  readonly foundation: Foundation;
}

/** An open invoker. Its owner disposes it. */
export interface LocalInvoker extends AsyncDisposable {
  readonly invoker: Invoker;
  /** Of the caller, in memory. */
  readonly artifacts: CallArtifacts;
  readonly log: Logger;
}

/**
 * Opens it. Throws UsageError for what the options or the environment say, CommandError for what
 * the host refuses.
 */
export async function openLocalInvoker(
  options: LocalInvokerOptions,
  context: Context,
): Promise<LocalInvoker> {
  const { caller, observer } = options;
  await using stack = new AsyncDisposableStack();
  const { config, host, foundation } = stack.use(await openLocalFoundation(options, context));
  const backend = options.debug ? debugged(foundation.backend, options.debug) : foundation.backend;
  const { invoker, starts, checker } = wireInvoker(config, host, {
    ...foundation,
    backend: observed(backend, observer),
  });
  stack.use(checker);
  stack.use(starts);
  const scope = artifactScope(config.artifacts.scope, caller);
  const owned = stack.move();
  return {
    invoker,
    artifacts: new CallArtifacts(foundation.store, scope),
    log: host.log,
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

/** The parts below the invoker. Throws as {@link openLocalInvoker} does. */
export async function openLocalFoundation(
  options: LocalToolOptions,
  context: Context,
): Promise<LocalFoundation> {
  const manifestPath = join(options.home, "manifest.yaml");
  await writeFile(manifestPath, manifestText(options));
  const config = readSettings(options.target, manifestPath, options, context.environment);
  const log = createLogger("warn", { write: (line) => showLogLine(line.trimEnd(), context.err) });
  const host = createHost(log, context.environment);
  const given = options.debug && profilesToDebug(options.profile);
  const foundation = await open(config, host, context.signal, given);
  return {
    config,
    host,
    foundation,
    [Symbol.asyncDispose]: () => foundation[Symbol.asyncDispose](),
  };
}

/** The profile without what isolates: nobody can debug through that. */
function profilesToDebug(name: string): Profiles {
  const profile = builtInProfiles.get(name);
  if (profile === undefined) throw new UsageError(`there is no profile ${name}`);
  return new Map([[name, { ...profile, backend: "host" }]]);
}

/** JSON is YAML. The manifest names the profile, because a request alone cannot widen it. */
function manifestText({ target, profile, env }: LocalToolOptions): string {
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
  { runtime, toolsDir }: Target,
  manifestPath: string,
  { programs, home, debug }: LocalToolOptions,
  own: Environment,
): Config {
  try {
    return readConfig({
      SANDBOX_BWRAP_BIN: programs.bwrapBin,
      SANDBOX_PYTHON_BIN: programs.pythonBin,
      ...Object.fromEntries(passedOn.flatMap((name) => (own[name] ? [[name, own[name]]] : []))),
      SAM_NAMESPACE: namespace,
      DEV_BROKER_HOST: "none",
      MANIFEST_PATH: manifestPath,
      // The other language has no directory, and so is not opened.
      TOOLS_PYTHON_DIR: runtime === "python" ? toolsDir : join(home, "none"),
      TOOLS_NODE_DIR: runtime === "node" ? toolsDir : join(home, "none"),
      SANDBOX_WORK_DIR: join(home, "work"),
      SANDBOX_MIN_FREE_DISK_MB: "0",
      ...(debug && { SANDBOX_ALLOW_UNSAFE: "1" }),
    });
  } catch (error) {
    if (error instanceof ConfigError) throw new UsageError(error.message, { cause: error });
    throw error;
  }
}

async function open(
  config: Config,
  host: Host,
  signal: AbortSignal,
  given: Profiles | undefined,
): Promise<Foundation> {
  try {
    return await openFoundation(config, host, signal, { profiles: given, installs: "wait" });
  } catch (error) {
    if (error instanceof ManifestError) {
      // The manifest is ours, so its places mean nothing to anybody.
      const problems = error.problems.map(({ field = "tool", message }) => {
        return `${field === profileField ? "--profile" : field}: ${message}`;
      });
      throw new UsageError(problems.join("\n"), { cause: error });
    }
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
