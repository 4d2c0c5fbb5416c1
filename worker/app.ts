/**
 * Wires every part by hand: from a configuration to the parts that a worker, or a check, needs.
 */
import { fileURLToPath } from "node:url";
import { openStore } from "./artifacts/open.ts";
import { artifactScope } from "./artifacts/scope.ts";
import type { ArtifactStore } from "./artifacts/store.ts";
import type { Config, Environment } from "./config.ts";
import { type Invoker, createInvoker } from "./invocation/invoker.ts";
import { type ToolCatalog, openCatalog } from "./manifest/catalog.ts";
import type { ToolEntry } from "./manifest/manifest.ts";
import { openNodeRunner } from "./runners/node.ts";
import { type Runners, openRunners } from "./runners/open.ts";
import { openPythonRunner } from "./runners/python.ts";
import type { ToolRunner } from "./runners/runner.ts";
import { type BubblewrapBackend, openBubblewrap } from "./sandbox/bubblewrap/backend.ts";
import { type Profiles, builtInProfiles } from "./sandbox/profile.ts";
import { type Clock, systemClock } from "./support/clock.ts";
import { newId } from "./support/ids.ts";
import { Slots } from "./support/slots.ts";
import type { Logger } from "./telemetry/logger.ts";

/** What the process gives to everything that runs in it. */
export interface Host {
  readonly log: Logger;
  readonly clock: Clock;
  /** The process's environment, for tools that the manifest allows some of it. */
  readonly environment: Environment;
}

/** The parts below the broker. Disposing gives everything back in reverse order of opening. */
export interface Foundation extends AsyncDisposable {
  readonly backend: BubblewrapBackend;
  readonly store: ArtifactStore;
  readonly runners: ReadonlyMap<ToolEntry["runtime"], ToolRunner>;
  readonly catalog: ToolCatalog;
  readonly profiles: Profiles;
}

/** The tool runners as seen from here, in source and in `dist/` alike. */
const toolRunnersFromSource = "../tool-runner/";
const toolRunnersFromDist = "../../tool-runner/";

/** A host over the machine's own time. */
export function createHost(log: Logger, environment: Environment): Host {
  return { log, clock: systemClock, environment };
}

/**
 * Opens sandbox, store, runners and manifest, and proves each of them usable. Either everything is open or nothing.
 * Throws SandboxError, StoreError or ManifestError.
 */
export async function openFoundation(
  config: Config,
  host: Host,
  signal: AbortSignal,
): Promise<Foundation> {
  await using parts = new AsyncDisposableStack();
  const profiles = builtInProfiles;
  const backend = parts.use(await openBackend(config, host));
  const store = parts.use(await openStore(config.artifacts.store));
  await store.check(signal);
  const runners = parts.use(await openLanguages(config, host, backend));
  const catalog = parts.use(
    await openCatalog({
      path: config.manifestPath,
      profileNames: [...profiles.keys()],
      admit: (tool, whileAsking) => runners.refuse(tool, whileAsking),
      log: host.log.child({ part: "manifest" }),
      clock: host.clock,
      signal,
    }),
  );
  const owned = parts.move();
  return {
    backend,
    store,
    runners: runners.byRuntime,
    catalog,
    profiles,
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

/** The invoker over a foundation, with its slots. */
export function wireInvoker(
  config: Config,
  host: Host,
  foundation: Foundation,
): { readonly invoker: Invoker; readonly slots: Slots } {
  const { catalog, runners, backend, store, profiles } = foundation;
  const slots = new Slots({
    capacity: config.sandbox.maxConcurrent,
    maxWaiting: config.sandbox.maxQueued,
  });
  const invoker = createInvoker({
    resolve: (toolName) => catalog.resolve(toolName),
    slots,
    runners,
    backend,
    store,
    scopeOf: (caller) => artifactScope(config.artifacts.scope, caller),
    profiles,
    defaultProfile: config.sandbox.defaultProfile,
    defaultTimeoutSeconds: config.defaultTimeoutSeconds,
    workBase: config.sandbox.workDir,
    minFreeDiskBytes: config.sandbox.minFreeDiskBytes,
    clock: host.clock,
  });
  return { invoker, slots };
}

function openBackend(config: Config, host: Host): Promise<BubblewrapBackend> {
  const log = host.log.child({ part: "sandbox" });
  return openBubblewrap({
    bwrapBin: config.sandbox.bwrapBin,
    workBase: config.sandbox.workDir,
    uid: process.getuid?.() === 0 ? config.sandbox.uid : undefined,
    clock: host.clock,
    newId,
    onRemoveFailed: (error) => log.warn({ err: error }, "work directory could not be removed"),
    onGuardLost: (error) => log.warn({ err: error }, "guard of sandboxes lost"),
  });
}

function openLanguages(config: Config, host: Host, backend: BubblewrapBackend): Promise<Runners> {
  const { toolsPythonDir, toolsNodeDir, sandbox } = config;
  const { scratchDir } = backend;
  const common = { backend, scratchDir, workerEnvironment: host.environment };
  return openRunners({
    python: {
      toolsDir: toolsPythonDir,
      variable: "TOOLS_PYTHON_DIR",
      open: () =>
        openPythonRunner({
          ...common,
          pythonBin: sandbox.pythonBin,
          toolsDir: toolsPythonDir,
          runnerDir: toolRunnerDir("python"),
        }),
    },
    node: {
      toolsDir: toolsNodeDir,
      variable: "TOOLS_NODE_DIR",
      open: () =>
        openNodeRunner({
          ...common,
          nodeBin: sandbox.nodeBin,
          toolsDir: toolsNodeDir,
          runnerDir: toolRunnerDir("node"),
          clock: host.clock,
          newId,
          log: host.log.child({ part: "node" }),
        }),
    },
  });
}

function toolRunnerDir(language: string): string {
  const base = import.meta.url.endsWith(".ts") ? toolRunnersFromSource : toolRunnersFromDist;
  return fileURLToPath(new URL(base + language, import.meta.url));
}
