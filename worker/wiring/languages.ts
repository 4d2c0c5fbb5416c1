/**
 * Opens the languages of tools: their runners, and the environments with the packages of tools.
 */
import { existsSync } from "node:fs";
import type { Config } from "../config/config.ts";
import type { InstallMode } from "../environments/installations.ts";
import { openToolEnvironments } from "../environments/open.ts";
import type { ToolEnvironments } from "../environments/tool-environments.ts";
import type { ToolEntry } from "../manifest/manifest.ts";
import type { ToolsetRevision } from "../manifest/toolsets/snapshots.ts";
import type { Toolsets } from "../manifest/toolsets/toolsets.ts";
import { openExecutableRunner } from "../runners/executable.ts";
import { openNodeRunner } from "../runners/node.ts";
import { type Runners, openRunners } from "../runners/open.ts";
import { openPythonRunner } from "../runners/python.ts";
import { type PreparedPython, preparePython } from "../runners/python/host.ts";
import type { InstallationOf, Interpreter } from "../runners/runner.ts";
import type { SandboxBackend } from "../sandbox/sandbox.ts";
import { newId } from "../support/ids.ts";
import type { Host } from "./host.ts";
import { sandboxUid } from "./sandboxes.ts";
import { toolRunnerDir } from "./shipped.ts";

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

/**
 * Prepares Python in a scratch directory while the sandboxes are opened; undefined when there is no
 * directory of Python tools.
 */
export function preparePythonAlongside(
  { toolsPythonDir, sandbox: { pythonBin } }: Config,
  { preparations }: Host,
  scratchDir: string,
): Promise<PreparedPython> | undefined {
  if (!existsSync(toolsPythonDir)) return undefined;
  const prepare = preparations?.preparePython ?? preparePython;
  return prepare({ pythonBin, runnerDir: toolRunnerDir("python"), scratchDir });
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
  const { packages, toolsPythonDir, toolsNodeDir, toolsExecutableDir } = config;
  return openToolEnvironments({
    settings: packages,
    toolsDirs: { python: toolsPythonDir, node: toolsNodeDir, executable: toolsExecutableDir },
    leaseToolset: leasing(toolsets),
    environment: host.environment,
    backend,
    uid: sandboxUid(config),
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
