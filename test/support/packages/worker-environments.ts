/**
 * The environments of a worker for tests: real installers in real sandboxes, and directories of the
 * test's own.
 */
import { spawnSync } from "node:child_process";
import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { type TestContext, onTestFinished } from "vitest";
import type { Interpreter } from "../../../worker/environments/environments.ts";
import {
  type OpenOptions,
  type PackageSettings,
  openToolEnvironments,
} from "../../../worker/environments/open.ts";
import { planOf } from "../../../worker/environments/plans.ts";
import { RegistrySettings } from "../../../worker/environments/registry/settings.ts";
import type { InstallMode } from "../../../worker/environments/installations.ts";
import type { ToolEnvironments } from "../../../worker/environments/tool-environments.ts";
import type { ToolEntry } from "../../../worker/manifest/manifest.ts";
import type { SandboxBackend } from "../../../worker/sandbox/sandbox.ts";
import { systemClock } from "../../../worker/support/clock.ts";
import { newId } from "../../../worker/support/ids.ts";
import { toPackageSet, type PackageFields } from "../../../worker/manifest/fields/packages.ts";
import { tool as anyTool } from "../../unit/manifest/fixtures.ts";
import { isRoot } from "../is-root.ts";

const MiB = 1024 * 1024;
export const python = "/usr/bin/python3";

/** The machine's Python, and the Node that runs the tests. */
export async function interpreterOf({ runtime }: Pick<ToolEntry, "runtime">): Promise<Interpreter> {
  const program = runtime === "python" ? python : process.execPath;
  const mounts = runtime === "python" ? [] : [{ source: program, target: program }];
  return { executable: program, program, mounts, identity: "of the tests" };
}

/** Skips a test on a machine without pip. */
export function requirePip({ skip }: Pick<TestContext, "skip">): void {
  const problem = spawnSync(python, ["-I", "-m", "pip", "--version"]).stderr.toString().trim();
  skip(problem !== "", `pip cannot be run: ${problem}`);
}

/** A line of the log. */
export interface PackageLogLine {
  readonly event: string;
  readonly [fact: string]: unknown;
}

/** Environments with what is around them. */
export interface EnvironmentsRig {
  readonly environments: ToolEnvironments;
  readonly lines: readonly PackageLogLine[];
}

/** What a test says of them. */
export interface EnvironmentsOptions {
  readonly backend: Pick<SandboxBackend, "acquire" | "share">;
  /** Directory of the test; the tools are in `tools/`, wheels in `wheels/`. */
  readonly base: string;
  readonly settings?: Partial<PackageSettings>;
  readonly environment?: Readonly<Record<string, string>>;
  readonly installs?: InstallMode;
  readonly leaseToolset?: OpenOptions["leaseToolset"];
  readonly retryMs?: { readonly baseMs: number; readonly capMs: number };
  readonly filesPollMs?: number;
}

/** Variables for pip that keep it from the network. */
export const offline = { PIP_NO_INDEX: "1", PATH: "/usr/bin:/bin" };

/** Opens environments until the end of the test. */
export function openEnvironments(options: EnvironmentsOptions): EnvironmentsRig {
  const { base, backend, environment = offline, installs = "wait" } = options;
  const lines: PackageLogLine[] = [];
  const log = (facts: object): void => void lines.push(facts as PackageLogLine);
  const tools = join(base, "tools");
  const environments = openToolEnvironments({
    settings: {
      policy: "install",
      allowed: undefined,
      directory: join(base, "environments"),
      keepMs: 3_600_000,
      maxBytes: 1024 * MiB,
      cacheMaxBytes: 0,
      timeoutSeconds: 60,
      memoryBytes: 1024 * MiB,
      diskBytes: 512 * MiB,
      wheelsDir: join(base, "wheels"),
      netrcFile: undefined,
      npmrcFile: undefined,
      uvBin: undefined,
      ...options.settings,
    },
    toolsDirs: { python: tools, node: tools, executable: tools },
    leaseToolset: options.leaseToolset,
    environment,
    backend,
    uid: isRoot ? 60_001 : undefined,
    interpreterOf,
    installs,
    retryMs: options.retryMs,
    filesPollMs: options.filesPollMs,
    clock: systemClock,
    newId,
    log: { info: log, warn: log },
  });
  onTestFinished(() => environments[Symbol.asyncDispose]());
  return { environments, lines };
}

/** A tool with packages, in the manifest's words. */
export function toolWith(
  fields: PackageFields,
  runtime: "python" | "node" = "python",
  name = "tool",
): ToolEntry {
  return anyTool(name, { runtime, packages: toPackageSet(runtime, fields) });
}

/** Writes files below a directory. */
export async function writeFiles(
  directory: string,
  files: Readonly<Record<string, string>>,
): Promise<void> {
  for (const [name, text] of Object.entries(files)) {
    const path = join(directory, name);
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, text);
  }
}

/** The key of the environment of a tool, whose files are in `base`. */
export async function keyOf(base: string, tool: ToolEntry): Promise<string> {
  const registry = new RegistrySettings({
    ...{ environment: offline, netrcFile: undefined, npmrcFile: undefined },
    wheelsDir: join(base, "wheels"),
  });
  const { key } = await planOf(tool, tool.packages!, {
    directory: base,
    fingerprint: (runtime) => registry.fingerprint(runtime),
    interpreterOf,
  });
  return key;
}
