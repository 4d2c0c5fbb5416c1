/**
 * The worker's parts below its invoker, for one tool of the command line or for those of a
 * manifest.
 */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import {
  type Config,
  ConfigError,
  type Environment,
  readConfig,
} from "../../worker/config/config.ts";
import { type Foundation, openFoundation } from "../../worker/wiring/foundation.ts";
import { type Host, type Preparations, createHost } from "../../worker/wiring/host.ts";
import { ManifestError } from "../../worker/manifest/manifest.ts";
import { type Profiles, builtInProfiles } from "../../worker/sandbox/profile.ts";
import { ProfilesError } from "../../worker/sandbox/profiles-file.ts";
import { SandboxError } from "../../worker/sandbox/sandbox.ts";
import { createLogger } from "../../worker/telemetry/logger.ts";
import { type LogEntry, readLogEntry, showLogLine } from "../../worker/telemetry/pretty-log.ts";
import { CommandError, type Context, UsageError, withCauses } from "../context.ts";
import { cacheDirectory, packageSettings } from "../packages/variables.ts";
import type { Programs } from "../prerequisites.ts";
import type { ToolsLayout } from "../tools-layout.ts";
import type { DebugOptions } from "./debug/debugged-backend.ts";
import { profilesVariable } from "./profiles.ts";
import { withProgramDirs } from "./program-dirs.ts";
import { type CodeTarget, entryFields, servedName } from "./target/target.ts";

const namespace = "tool-run";

/** The context of commands that run tools as a worker does. */
export interface ToolContext extends Context {
  /** Shared by commands of one process; each prepares its own unless given. */
  readonly preparations?: Preparations;
}

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

/**
 * Variables of the worker that say how sandboxes are made and what calls are held to; everything
 * else is decided here.
 */
const passedOn = [
  ...Object.values(variableOf),
  ...["SANDBOX_PYTHONS", "SANDBOX_PYTHON_DOWNLOADS", "SANDBOX_NODES"],
  ...["SANDBOX_ALLOWED_MOUNTS", "SANDBOX_ALLOWED_DEVICES"],
  ...["SANDBOX_UID", profilesVariable, "SANDBOX_DEFAULT_NETWORK", "SANDBOX_HOST_NETWORK"],
  ...["CREDENTIAL_SOURCES", "TOOLS_DESCRIBED_BY"],
];

/** What sandboxes are made with. */
interface Surroundings {
  readonly programs: Programs;
  /** A directory that sandboxes can reach; whoever made it removes it afterwards. */
  readonly home: string;
}

/** The one tool. */
export interface LocalToolOptions extends Surroundings {
  readonly target: CodeTarget;
  readonly profile: string;
  /** Names of our own environment variables that the tool may see. */
  readonly env: readonly string[];
  /** Undefined in a sandbox. */
  readonly debug: DebugOptions | undefined;
}

/** The tools of a manifest. */
export interface LocalManifestOptions extends Surroundings {
  readonly layout: ToolsLayout;
  /** The one that is meant: the log does not have that others are not served. */
  readonly tool?: string | undefined;
  /** Whether calls have another network than their tools' entries, and so no credential. */
  readonly hasOwnNetwork?: boolean;
  /** Called with each line of the log, also those that are not shown. */
  readonly onLog?: ((entry: LogEntry) => void) | undefined;
}

/** A foundation. Its owner disposes it. */
export interface LocalFoundation extends AsyncDisposable {
  readonly config: Config;
  readonly host: Host;
  readonly foundation: Foundation;
  /** Keeps descriptions of tools between runs; undefined where the environment has no place. */
  readonly descriptionsDir: string | undefined;
}

/**
 * Opens it with a manifest of the one tool. Throws UsageError for what the options or the
 * environment say, CommandError for what the host refuses.
 */
export async function openToolFoundation(
  options: LocalToolOptions,
  context: Context,
): Promise<LocalFoundation> {
  const { target, home, debug } = options;
  const manifestPath = join(home, "manifest.yaml");
  await writeFile(manifestPath, manifestText(options));
  // The other languages have no directory, and so are not opened.
  const directoryOf = (runtime: CodeTarget["runtime"]): string =>
    target.runtime === runtime ? target.toolsDir : join(home, "none");
  const layout = {
    manifestPath,
    pythonDir: directoryOf("python"),
    nodeDir: directoryOf("node"),
    executableDir: directoryOf("executable"),
  };
  const more: Environment = debug === undefined ? {} : { SANDBOX_ALLOW_UNSAFE: "1" };
  const config = readSettings(layout, options, { ...own(context), ...more });
  const profiles = debug && profilesToDebug(options.profile);
  // The manifest is ours, so its places mean nothing to anybody.
  const problemsOf = ({ problems }: ManifestError): string =>
    problems
      .map(({ field = "tool", message }) => {
        return `${field === profileField ? "--profile" : field}: ${message}`;
      })
      .join("\n");
  return await open(config, profiles, problemsOf, context);
}

/** Opens it with a manifest. Throws as for a tool, and UsageError for what the manifest says. */
export async function openManifestFoundation(
  options: LocalManifestOptions,
  context: Context,
): Promise<LocalFoundation> {
  const packages = Object.entries(context.environment).filter(([name, value]) => {
    return name.startsWith("PACKAGE_") && value !== "";
  });
  const given = {
    PACKAGE_DIR: join(options.home, "environments"),
    ...Object.fromEntries(packages),
    ...own(context),
  };
  const layout = await withProgramDirs(options.layout, options.home, context.environment);
  const config = readSettings(layout, options, given);
  const sandbox = options.hasOwnNetwork
    ? { ...config.sandbox, credentialSources: undefined }
    : config.sandbox;
  const { tool, onLog } = options;
  const listening = { tool, onLog };
  return await open(
    { ...config, sandbox },
    undefined,
    ({ message }) => message,
    context,
    listening,
  );
}

/** The profile without what isolates: nobody can debug through that. */
function profilesToDebug(name: string): Profiles {
  const profile = builtInProfiles.get(name);
  if (profile === undefined) throw new UsageError(`there is no profile ${name}`);
  return new Map([[name, { ...profile, backend: "host", network: "host" }]]);
}

/** JSON is YAML. The manifest names the profile, because a request alone cannot widen it. */
function manifestText({ target, profile, env }: LocalToolOptions): string {
  const entry = { ...entryFields(target), [profileField]: profile, env };
  return JSON.stringify({ version: 1, tools: { [servedName(target)]: entry } }, undefined, 2);
}

function own({ environment }: Context): Environment {
  return {
    ...packageSettings(environment),
    ...Object.fromEntries(
      passedOn.flatMap((name) => (environment[name] ? [[name, environment[name]]] : [])),
    ),
  };
}

function readSettings(
  { manifestPath, pythonDir, nodeDir, executableDir }: ToolsLayout,
  { programs, home }: Surroundings,
  given: Environment,
): Config {
  try {
    return readConfig({
      SANDBOX_BWRAP_BIN: programs.bwrapBin,
      SANDBOX_PYTHON_BIN: programs.pythonBin,
      ...given,
      SAM_NAMESPACE: namespace,
      DEV_BROKER_HOST: "none",
      MANIFEST_PATH: manifestPath,
      TOOLS_PYTHON_DIR: pythonDir,
      TOOLS_NODE_DIR: nodeDir,
      TOOLS_EXECUTABLE_DIR: executableDir,
      SANDBOX_WORK_DIR: join(home, "work"),
      SANDBOX_MIN_FREE_DISK_MB: "0",
    });
  } catch (error) {
    if (error instanceof ConfigError) throw new UsageError(error.message, { cause: error });
    throw error;
  }
}

async function open(
  config: Config,
  profiles: Profiles | undefined,
  problemsOf: (error: ManifestError) => string,
  context: ToolContext,
  { tool, onLog }: Pick<LocalManifestOptions, "tool" | "onLog"> = {},
): Promise<LocalFoundation> {
  const write = (line: string): void => {
    const entry = readLogEntry(line.trimEnd());
    if (entry !== undefined) onLog?.(entry);
    const isQuiet = entry?.level === "info" || isOfOther(entry, tool);
    if (!isQuiet) showLogLine(line.trimEnd(), context.err);
  };
  const log = createLogger(onLog === undefined ? "warn" : "info", { write });
  const host = createHost(log, context.environment, context.preparations);
  try {
    const foundation = await openFoundation(config, host, context.signal, {
      profiles,
      installs: "wait",
    });
    const dispose = (): PromiseLike<void> => foundation[Symbol.asyncDispose]();
    const cache = cacheDirectory(context.environment);
    const descriptionsDir = cache && join(cache, "descriptions");
    return { config, host, foundation, descriptionsDir, [Symbol.asyncDispose]: dispose };
  } catch (error) {
    if (error instanceof ManifestError) throw new UsageError(problemsOf(error), { cause: error });
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

/** Whether a line says that another tool than the one that is meant is not served. */
function isOfOther(entry: LogEntry | undefined, tool: string | undefined): boolean {
  return tool !== undefined && entry?.event === "tool.not_served" && entry.members["tool"] !== tool;
}
