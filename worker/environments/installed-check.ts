/**
 * Whether the packages of a tool are there already: what `PACKAGE_POLICY=check` asks in place of an
 * installation.
 */
import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { satisfies, valid } from "@renovatebot/pep440";
import satisfiesRange from "semver/functions/satisfies.js";
import { z } from "zod";
import type { PackageSet, ToolEntry } from "../manifest/manifest.ts";
import { parseNodeRequirement } from "../manifest/requirements/node.ts";
import { EnvironmentError, type Interpreter } from "./environments.ts";
import { pythonRequirements } from "./plans.ts";

const run = promisify(execFile);

/** Milliseconds for an interpreter to answer. */
const questionTimeoutMs = 30_000;

/** Looks packages up without importing them. */
const aboutPackages = `
import importlib.metadata, importlib.util, json, sys
def about(name):
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        module = name.replace("-", "_")
        # For a name with dots, find_spec would import what stands before the last one.
        return "" if "." not in module and importlib.util.find_spec(module) else None
print(json.dumps([about(name) for name in sys.argv[1:]]))`;

const versionsOf = z.array(z.string().nullable());
const packageFile = z.object({ version: z.string() });

/** What packages are looked up with. */
export interface CheckOptions {
  readonly toolsDir: string;
  interpreterOf(tool: ToolEntry): Promise<Interpreter>;
}

/**
 * Why a tool lacks packages, or undefined. Throws EnvironmentError for a file that is refused, and
 * for versions that cannot be read; rejects with the signal's reason.
 */
export async function missingPackage(
  tool: ToolEntry,
  packages: PackageSet,
  options: CheckOptions,
  signal: AbortSignal,
): Promise<string | undefined> {
  const { lockfile } = packages;
  if (tool.runtime === "node" || lockfile?.endsWith("uv.lock")) {
    if (lockfile !== undefined) return `${lockfile} is only read where PACKAGE_POLICY is install`;
    return missingNodePackage(tool, packages, options.toolsDir);
  }
  const requirements = await pythonRequirements(packages, options.toolsDir);
  const { program } = await options.interpreterOf(tool);
  const names = requirements.map(({ name }) => name);
  const found = await pythonVersions(program, names, signal);
  for (const [index, { name, versions }] of requirements.entries()) {
    const version = found[index] ?? null;
    if (version === null) return `package "${name}" is not installed`;
    if (version === "" || versions === undefined) continue;
    // A pre-release that is installed counts (PEP 440, "Handling of pre-releases").
    if (valid(version) !== null && satisfies(version, versions, { prereleases: true })) continue;
    return otherVersion(name, version, versions);
  }
  return undefined;
}

/** The version of each package; empty where it has none, null where it is not installed. */
async function pythonVersions(
  program: string,
  names: readonly string[],
  signal: AbortSignal,
): Promise<readonly (string | null)[]> {
  const options = { env: {}, timeout: questionTimeoutMs, signal };
  try {
    const { stdout } = await run(program, ["-I", "-c", aboutPackages, ...names], options);
    return versionsOf.parse(JSON.parse(stdout));
  } catch (error) {
    signal.throwIfAborted();
    throw unknowable(names, error);
  }
}

/** Looks for `node_modules` as Node does, from the tool's module up to the directory of tools. */
async function missingNodePackage(
  { module }: ToolEntry,
  { requirements }: PackageSet,
  toolsDir: string,
): Promise<string | undefined> {
  for (const text of requirements) {
    const { name, range } = parseNodeRequirement(text) ?? { name: text, range: "*" };
    const version = await nodePackageVersion(toolsDir, dirname(module), name);
    if (version === undefined) return `package "${name}" is not installed`;
    if (!satisfiesRange(version, range, { includePrerelease: true }))
      return otherVersion(name, version, range);
  }
  return undefined;
}

async function nodePackageVersion(
  toolsDir: string,
  folder: string,
  name: string,
): Promise<string | undefined> {
  for (let level = folder; ; level = dirname(level)) {
    const path = join(toolsDir, level, "node_modules", name, "package.json");
    const text = await readFile(path, "utf8").catch(() => undefined);
    if (text !== undefined) return versionIn(text, name);
    if (level === ".") return undefined;
  }
}

function versionIn(text: string, name: string): string {
  try {
    return packageFile.parse(JSON.parse(text)).version;
  } catch (error) {
    throw unknowable([name], error);
  }
}

/** The cause may name paths of the host. */
function unknowable(names: readonly string[], cause: unknown): EnvironmentError {
  const packages = names.map((name) => `"${name}"`).join(", ");
  return new EnvironmentError(`the versions of ${packages} cannot be read`, { cause });
}

function otherVersion(name: string, version: string, wanted: string): string {
  return `package "${name}" is installed in version ${version}, the manifest wants ${wanted}`;
}
