/**
 * Installs Python packages with uv, else with pip, into a directory that Python imports from.
 */
import type { FileHandle } from "node:fs/promises";
import { dirname, join } from "node:path";
import { below, readUntrusted } from "../../support/files/below.ts";
import { open } from "node:fs/promises";
import {
  RequirementsError,
  formatRequirements,
  parseRequirementsFile,
} from "../../manifest/requirements/python-file.ts";
import { EnvironmentError, type EnvironmentPlan } from "../environments.ts";
import { type PackageCache, cacheInside, withCache } from "./cache.ts";
import {
  type InstallerOptions,
  type InstallerProgram,
  findUv,
  pythonInstaller,
} from "./installers.ts";
import {
  type BuildHost,
  type BuildStep,
  type Installed,
  type TimedHost,
  buildPaths,
  runStep,
} from "./run.ts";
import type { RegistrySettings } from "../registry/settings.ts";

/** Folder of an environment. */
export const pythonFolder = "packages";
const requirementsFile = "requirements.txt";
/** Largest export of a lockfile, in bytes. */
const maxExportBytes = 8 * 1024 * 1024;

/** What a builder uses. */
export interface BuilderParts {
  readonly host: BuildHost;
  readonly registry: RegistrySettings;
  readonly installers: InstallerOptions;
  /** Undefined where the operator wants none. */
  readonly cache: PackageCache | undefined;
  /** Throws EnvironmentError for a name that is not allowed. */
  requireAllowed(names: Iterable<string>): void;
}

/** What one build uses. */
export type BuildParts = BuilderParts & { readonly host: TimedHost };

/**
 * Installs the plan. Calls `take` with the directory that has {@link pythonFolder}. Throws
 * EnvironmentError, SandboxError; rejects with the signal's reason.
 */
export async function installPython<Result>(
  parts: BuildParts,
  plan: EnvironmentPlan,
  take: (output: FileHandle, installed: Installed) => Promise<Result>,
  signal: AbortSignal,
): Promise<Result> {
  const { interpreter } = plan;
  const isLocked = plan.kind === "uv-lock";
  const { names, requirements } = isLocked
    ? await exportLock(parts, plan, signal)
    : { names: plan.names, requirements: plan.files.get(requirementsFile) ?? "" };
  const program = await pythonInstaller(interpreter, parts.installers);
  const access = await parts.registry.accessOf(program.name);
  const target = join(buildPaths.output, pythonFolder);
  const options = [
    ...(program.name === "uv" ? uvOptions(interpreter.executable) : pipOptions),
    ...["--target", target],
    ...sourceOptions(program.name, access.environment),
    ...(isLocked || plan.kind === "hashed" ? ["--require-hashes"] : []),
    ...(access.wheels === undefined ? [] : ["--find-links", access.wheels]),
    ...["-r", join(buildPaths.input, requirementsFile)],
  ];
  const step = {
    title: program.name,
    environment: new Map([
      // As an option it says the same to both installers.
      ...[...access.environment].filter(([name]) => name !== "UV_NO_BUILD"),
      ["PATH", `${dirname(interpreter.executable)}:/usr/local/bin:/usr/bin:/bin`],
      ["PIP_CONFIG_FILE", "/dev/null"],
      ...(access.files.has("netrc") ? ([["NETRC", join(buildPaths.input, "netrc")]] as const) : []),
    ]),
    shares: [...program.shares, ...access.shares],
    mounts: interpreter.mounts,
    files: new Map([[requirementsFile, requirements], ...access.files]),
    redaction: access.redaction,
  };
  return withCache(
    // Where archives of source are asked for, no build does without their code.
    access.environment.has("PIP_NO_BINARY") ? undefined : parts.cache,
    program.name,
    (cache) => {
      const argv = [...commandOf(program, interpreter.executable, cache !== undefined), ...options];
      return runStep(
        parts.host,
        { ...step, argv, cache },
        (output, over) => take(output, { installer: program.name, names, signal: over }),
        signal,
      );
    },
    signal,
  );
}

/** The command that installs: with the cache, wheels only. */
function commandOf(
  { name, argv }: InstallerProgram,
  python: string,
  isCached: boolean,
): readonly string[] {
  const wheelsOnly = ["--cache-dir", cacheInside, "--only-binary", ":all:"];
  if (name === "uv")
    return [...argv, "pip", "install", ...(isCached ? wheelsOnly : ["--no-cache"])];
  if (!isCached) return [...argv, "install", "--no-cache-dir"];
  return [python, "-I", "-c", pipAlone, "install", ...wheelsOnly];
}

/**
 * pip, which can start no program. `--only-binary` does not count for an archive of source that a
 * wheel requires by its URL.
 */
const pipAlone = `
import runpy, sys
starts = {"subprocess.Popen", "os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "os.system"}
def refuse(event, args):
    if event in starts:
        raise PermissionError("a build with a cache runs no other program")
sys.addaudithook(refuse)
runpy.run_module("pip", run_name="__main__", alter_sys=True)
`;

const pipOptions = [
  ...["--no-input", "--disable-pip-version-check", "--no-color"],
  ...["--progress-bar", "off", "--no-warn-script-location"],
];

function uvOptions(python: string): readonly string[] {
  return [
    ...["--no-config", "--no-progress", "--color", "never", "--no-python-downloads"],
    ...["--python", python, "--link-mode", "copy", "--compile-bytecode"],
  ];
}

/** What the operator says of archives in variables that the installer does not read itself. */
export function sourceOptions(
  installer: string,
  environment: ReadonlyMap<string, string>,
): readonly string[] {
  const wheelsOnly = isOn(environment.get("UV_NO_BUILD")) ? ["--only-binary", ":all:"] : [];
  if (installer !== "uv") return wheelsOnly;
  const each = (option: string, name: string): readonly string[] =>
    (environment.get(name) ?? "")
      .split(/[\s,]+/)
      .filter(Boolean)
      .flatMap((value) => [option, value]);
  return [
    ...(isOn(environment.get("UV_NO_INDEX")) ? ["--no-index"] : []),
    ...wheelsOnly,
    ...each("--only-binary", "PIP_ONLY_BINARY"),
    ...each("--no-binary", "PIP_NO_BINARY"),
    ...each("--find-links", "PIP_FIND_LINKS"),
  ];
}

function isOn(value: string | undefined): boolean {
  return value !== undefined && /^(?:1|true|yes|on)$/i.test(value);
}

/** The requirements of a `uv.lock` with their hashes, checked as those of a file. */
async function exportLock(
  parts: BuildParts,
  plan: EnvironmentPlan,
  signal: AbortSignal,
): Promise<{ readonly names: readonly string[]; readonly requirements: string }> {
  const uv = await findUv(parts.installers);
  if (uv === undefined)
    throw new EnvironmentError("a uv.lock needs uv; install it, or set PACKAGE_UV_BIN", {
      publicReason: "the worker has no installer for its packages",
    });
  const { redaction } = await parts.registry.accessOf("uv");
  const exported = join(buildPaths.output, requirementsFile);
  const options = [
    ...["--frozen", "--no-config", "--no-cache", "--no-progress", "--color", "never"],
    ...["--no-dev", "--no-emit-project", "--no-header", "--no-annotate", "--no-python-downloads"],
    ...["--python", plan.interpreter.executable, "--project", buildPaths.input],
    ...["--format", "requirements-txt", "--output-file", exported],
  ];
  const step: BuildStep = {
    title: "uv export",
    argv: [...uv.argv, "export", ...options],
    environment: new Map(),
    shares: uv.shares,
    mounts: plan.interpreter.mounts,
    files: plan.files,
    redaction,
  };
  const offline = { ...parts.host, profile: { ...parts.host.profile, network: "none" as const } };
  const text = await runStep(offline, step, readExport, signal);
  try {
    const requirements = parseRequirementsFile(text);
    const names = requirements.map(({ name }) => name);
    parts.requireAllowed(names);
    return { names, requirements: formatRequirements(requirements) };
  } catch (error) {
    if (!(error instanceof RequirementsError)) throw error;
    throw new EnvironmentError(`${plan.title}, exported by uv: ${error.message}`, { cause: error });
  }
}

async function readExport(output: FileHandle): Promise<string> {
  await using file = await open(below(output, requirementsFile), readUntrusted);
  const { size } = await file.stat();
  if (size > maxExportBytes) throw new EnvironmentError("the lockfile is too large");
  return await file.readFile("utf8");
}
