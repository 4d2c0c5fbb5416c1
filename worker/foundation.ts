/**
 * Opens the parts below the broker, of a worker or of a check, from a configuration.
 */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { openCachedStore } from "./artifacts/open.ts";
import type { ArtifactStore } from "./artifacts/store.ts";
import { openAudit } from "./audit.ts";
import { timeLimitProblem } from "./broker/open.ts";
import { type Config, ConfigError, type Environment } from "./config/config.ts";
import { openToolEnvironments } from "./environments/open.ts";
import type { InstallMode } from "./environments/installations.ts";
import type { ToolEnvironments } from "./environments/tool-environments.ts";
import { type ToolCatalog, openCatalog } from "./manifest/catalog.ts";
import type { Runtime, ToolEntry } from "./manifest/manifest.ts";
import type { ToolsetRevision } from "./manifest/toolsets/snapshots.ts";
import { Toolsets } from "./manifest/toolsets/toolsets.ts";
import { publicRefusal } from "./protocol/refusal.ts";
import { openExecutableRunner } from "./runners/executable.ts";
import { openNodeRunner } from "./runners/node.ts";
import { type Runners, openRunners } from "./runners/open.ts";
import { openPythonRunner } from "./runners/python.ts";
import { type PreparedPython, preparePython } from "./runners/python/host.ts";
import type { InstallationOf, Interpreter, ToolRunner } from "./runners/runner.ts";
import { type BackendsOptions, openBackends, requireAllowed } from "./sandbox/backends.ts";
import { examineHost } from "./sandbox/bubblewrap/backend.ts";
import { HostAccess } from "./sandbox/host-access.ts";
import type { HostCheck, HostExamination } from "./sandbox/host-check.ts";
import type { Profiles } from "./sandbox/profile.ts";
import { isolates } from "./sandbox/registry.ts";
import { loadProfiles } from "./sandbox/profiles-file.ts";
import type { SandboxBackend } from "./sandbox/sandbox.ts";
import { type Clock, systemClock } from "./support/clock.ts";
import { newId } from "./support/ids.ts";
import { logEvent } from "./telemetry/log-event.ts";
import type { AuditLog } from "./telemetry/audit/audit.ts";
import type { Logger } from "./telemetry/logger.ts";

/** Services of the process. */
export interface Host {
  readonly log: Logger;
  readonly clock: Clock;
  /** The process's environment; the manifest grants tools parts of it. */
  readonly environment: Environment;
}

/** The parts below the broker. Disposing closes them in reverse order of opening. */
export interface Foundation extends AsyncDisposable {
  readonly backend: SandboxBackend;
  readonly store: ArtifactStore;
  /** Undefined without `AUDIT_LOG`. */
  readonly audit: AuditLog | undefined;
  readonly runners: ReadonlyMap<ToolEntry["runtime"], ToolRunner>;
  readonly environments: ToolEnvironments;
  readonly catalog: ToolCatalog;
  /** Undefined without `TOOLSETS_DIR`. */
  readonly toolsets: Pick<Toolsets, "lease"> | undefined;
  readonly profiles: Profiles;
  readonly hostAccess: HostAccess;
}

/** Options of {@link openFoundation}. */
export interface FoundationOptions {
  /** Replace the profiles of the configuration. */
  readonly profiles?: Profiles | undefined;
  /** How packages that are not there are installed. Default: in the background. */
  readonly installs?: InstallMode;
}

/** Paths of the tool runners relative to this file. */
const toolRunnersFromSource = "../tool-runner/";
const toolRunnersFromDist = "../../tool-runner/";

/** A host on the system clock. */
export function createHost(log: Logger, environment: Environment): Host {
  return { log, clock: systemClock, environment };
}

/**
 * Opens and checks sandbox, store, runners and manifest, all or none. Throws ConfigError,
 * ProfilesError, SandboxError, StoreError, ManifestError, or the signal's reason.
 */
export async function openFoundation(
  config: Config,
  host: Host,
  signal: AbortSignal,
  { profiles: ownProfiles, installs = "background" }: FoundationOptions = {},
): Promise<Foundation> {
  await using parts = new AsyncDisposableStack();
  const audit = await openAudit(config, host);
  if (audit !== undefined) parts.use(audit);
  const profiles = ownProfiles ?? (await readProfiles(config));
  // Concurrently: Python and the backend take longest at start.
  let preparedPython: Promise<PreparedPython> | undefined;
  const alongside = (scratchDir: string): Promise<unknown> => {
    if (!existsSync(config.toolsPythonDir)) return Promise.resolve();
    const { pythonBin } = config.sandbox;
    preparedPython = preparePython({ pythonBin, runnerDir: toolRunnerDir("python"), scratchDir });
    return preparedPython;
  };
  const backend = parts.use(await openBackend(config, host, { profiles, alongside }, signal));
  const { store: storeConfig, cache } = config.artifacts;
  const store = parts.use(await openCachedStore(storeConfig, cache, host));
  const limits = await store.check(signal);
  if (limits.length > 0) logEvent(host.log, "artifacts.limited", { limits });
  const { scratchDir } = backend;
  const toolsets = await openToolsets(config, host, { profiles, scratchDir }, signal);
  const given = { backend, preparedPython, installs, toolsets };
  const { runners, environments } = parts.use(await openLanguages(config, host, given));
  const hostAccess = createHostAccess(config);
  const catalog = parts.use(
    await openCatalog({
      path: config.manifestPath,
      profileNames: [...profiles.keys()],
      runsExecutables: runners.withDirectory.has("executable"),
      ...(toolsets !== undefined && { toolsets }),
      ...(config.broker.kind !== "dev" && { queues: [...config.queues.keys()] }),
      admit: async (tool, whileAsking) =>
        publicRefusal(
          timeLimitProblem(config.broker, tool.timeoutSeconds ?? config.defaultTimeoutSeconds),
        ) ??
        (await hostAccess.refuse(tool)) ??
        (await runners.refuse(tool, whileAsking)) ??
        environments.refuse(tool, whileAsking),
      admitChanged: () => environments.changed,
      onServed: (served, newest) =>
        environments.retain(served.tools.values(), newest.tools.values()),
      log: host.log.child({ part: "manifest" }),
      clock: host.clock,
      signal,
    }),
  );
  const owned = parts.move();
  return {
    backend,
    store,
    audit,
    runners: runners.byRuntime,
    environments,
    catalog,
    toolsets,
    profiles,
    hostAccess,
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

/**
 * Loads all profiles. Throws ProfilesError; ConfigError for an unknown default profile;
 * SandboxError for a profile without isolation where that is not allowed.
 */
export async function readProfiles(config: Config): Promise<Profiles> {
  const { profilesFile, allowUnsafe } = config.sandbox;
  const profiles = await loadProfiles(profilesFile);
  requireDefaultProfile(config, profiles);
  requireAllowed(profiles, allowUnsafe);
  return profiles;
}

function requireDefaultProfile({ sandbox }: Config, profiles: Profiles): void {
  const { defaultProfile } = sandbox;
  if (profiles.has(defaultProfile)) return;
  const names = [...profiles.keys()].join(", ");
  throw new ConfigError([
    `SANDBOX_DEFAULT_PROFILE: "${defaultProfile}" is not a profile; accepted: one of ${names}`,
  ]);
}

function createHostAccess({ sandbox }: Config): HostAccess {
  const { allowedMounts, allowedDevices } = sandbox;
  return new HostAccess({ allowedMounts, allowedDevices, isForeign: isRoot() });
}

function isRoot(): boolean {
  return process.getuid?.() === 0;
}

/**
 * Probes the sandbox features of this host. Leaves nothing behind. Throws SandboxError when the
 * probe fails, or the signal's reason.
 */
export async function examineSandboxes(
  config: Config,
  host: Host,
  signal: AbortSignal,
): Promise<HostExamination> {
  const { settings, ...options } = backendOptions(config, host);
  const { version, checks } = await examineHost({ ...options, ...settings.bubblewrap }, signal);
  return { technology: version, checks };
}

/** Opens the sandbox backends of the profiles; the caller owns them. Throws SandboxError. */
export function openBackend(
  config: Config,
  host: Host,
  given: Pick<BackendsOptions, "profiles" | "alongside">,
  signal: AbortSignal,
): Promise<SandboxBackend> {
  const { allowUnsafe } = config.sandbox;
  const options = { ...backendOptions(config, host), ...given, allowUnsafe };
  return openBackends(options, signal);
}

/** Logs missing sandbox features of this host with remedies, and an unneeded root user. */
export function logAdvice(config: Config, { log }: Host, foundation: Foundation): void {
  for (const { name, state, finding, remedy } of checksOf(foundation)) {
    const facts = { part: "sandbox", check: name, state, finding, remedy };
    if (state !== "held") logEvent(log, "sandbox.check_not_held", facts);
  }
  if (!isRoot()) return;
  const advice = "start the worker as an ordinary user, who needs no capability";
  logEvent(log, "worker.root_not_needed", { sandboxUid: config.sandbox.uid, advice });
}

/** The host checks of all profiles, without duplicates. */
function checksOf({ backend, profiles }: Foundation): Iterable<HostCheck> {
  const all = [...profiles.values()].flatMap((profile) => backend.facts(profile).checks);
  return new Map(all.map((check) => [check.name, check])).values();
}

function backendOptions(config: Config, host: Host) {
  const log = host.log.child({ part: "sandbox" });
  const { bwrapBin, workDir, uid, minimum } = config.sandbox;
  return {
    settings: { bubblewrap: { bwrapBin, minimum } },
    workBase: workDir,
    uid: isRoot() ? uid : undefined,
    clock: host.clock,
    newId,
    onRemoveFailed: (error: unknown) =>
      logEvent(log, "work_directory.remove_failed", { err: error }),
    onGuardLost: (error: unknown) => logEvent(log, "sandbox.guard_lost", { err: error }),
  };
}

/**
 * The toolsets of `TOOLSETS_DIR`; undefined without one. Their tools cannot choose a profile that
 * isolates nothing.
 */
export async function openToolsets(
  { toolsetsDir, broker, queues }: Config,
  { log, clock }: Host,
  { profiles, scratchDir }: { readonly profiles: Profiles; readonly scratchDir: string },
  signal: AbortSignal,
): Promise<Toolsets | undefined> {
  if (toolsetsDir === undefined) return undefined;
  const options = {
    directory: toolsetsDir,
    base: join(scratchDir, "toolsets"),
    profileNames: [...profiles.values()].filter(isolates).map(({ name }) => name),
    ...(broker.kind !== "dev" && { queues: [...queues.keys()] }),
    newId,
    log: log.child({ part: "toolsets" }),
    clock,
  };
  return Toolsets.open(options, signal);
}

/** What {@link openLanguages} uses beside the configuration. */
interface LanguageParts {
  readonly backend: SandboxBackend;
  readonly preparedPython?: Promise<PreparedPython> | undefined;
  readonly installs: InstallMode;
  /** Undefined without toolsets. */
  readonly toolsets?: Pick<Toolsets, "lease"> | undefined;
}

/** Runners, and the environments of the tools that they run. */
export interface Languages extends AsyncDisposable {
  readonly runners: Runners;
  readonly environments: ToolEnvironments;
}

/** Opens the tool languages; the caller owns them. Throws SandboxError. */
export async function openLanguages(
  config: Config,
  host: Host,
  parts: LanguageParts,
): Promise<Languages> {
  await using opened = new AsyncDisposableStack();
  // Each needs the other: packages are installed for an interpreter, and mounted by a runner.
  const environments = openEnvironments(config, host, parts, (tool) => runners.interpreterOf(tool));
  const runners = opened.use(
    await openToolRunners(config, host, parts, (tool) => environments.installationOf(tool)),
  );
  opened.use(environments);
  const owned = opened.move();
  return { runners, environments, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}

function openToolRunners(
  config: Config,
  host: Host,
  { backend, preparedPython, toolsets }: LanguageParts,
  installationOf: InstallationOf,
): Promise<Runners> {
  const { toolsPythonDir, toolsNodeDir, toolsExecutableDir, sandbox, packages } = config;
  const { scratchDir } = backend;
  const { environment: workerEnvironment } = host;
  const common = {
    ...{ backend, scratchDir, workerEnvironment, leaseToolset: leasing(toolsets) },
    ...{ installationOf, installsPackages: packages.policy === "install" },
  };
  const languages = {
    python: {
      toolsDir: toolsPythonDir,
      variable: "TOOLS_PYTHON_DIR",
      open: () =>
        openPythonRunner({
          ...common,
          pythonBin: sandbox.pythonBin,
          named: sandbox.pythons,
          downloadsByUv: sandbox.downloadsPythons,
          uvBin: packages.uvBin,
          toolsDir: toolsPythonDir,
          runnerDir: toolRunnerDir("python"),
          prepared: preparedPython,
        }),
    },
    node: {
      toolsDir: toolsNodeDir,
      variable: "TOOLS_NODE_DIR",
      open: () =>
        openNodeRunner({
          ...common,
          nodeBin: sandbox.nodeBin,
          named: sandbox.nodes,
          toolsDir: toolsNodeDir,
          runnerDir: toolRunnerDir("node"),
          clock: host.clock,
          newId,
          log: host.log.child({ part: "node" }),
        }),
    },
    executable: {
      toolsDir: toolsExecutableDir,
      variable: "TOOLS_EXECUTABLE_DIR",
      open: async () => openExecutableRunner({ ...common, toolsDir: toolsExecutableDir }),
    },
  };
  return openRunners(languages, toolsets !== undefined);
}

function openEnvironments(
  config: Config,
  host: Host,
  { backend, installs, toolsets }: LanguageParts,
  interpreterOf: (tool: ToolEntry) => Promise<Interpreter>,
): ToolEnvironments {
  const { packages, sandbox, toolsPythonDir, toolsNodeDir, toolsExecutableDir } = config;
  return openToolEnvironments({
    settings: packages,
    toolsDirs: { python: toolsPythonDir, node: toolsNodeDir, executable: toolsExecutableDir },
    leaseToolset: leasing(toolsets),
    environment: host.environment,
    backend,
    uid: isRoot() ? sandbox.uid : undefined,
    interpreterOf,
    installs,
    clock: host.clock,
    newId,
    log: host.log.child({ part: "packages" }),
  });
}

function leasing(toolsets: LanguageParts["toolsets"]) {
  return toolsets && ((of: ToolsetRevision) => toolsets.lease(of));
}

/** The tool runner of a language. */
export function toolRunnerDir(language: Runtime): string {
  const base = import.meta.url.endsWith(".ts") ? toolRunnersFromSource : toolRunnersFromDist;
  return fileURLToPath(new URL(base + language, import.meta.url));
}
