/**
 * What the environment of a tool is made from: the manifest's requirements and the files that it
 * names, read and checked before an installer sees them.
 */
import { constants } from "node:fs";
import { open, realpath } from "node:fs/promises";
import { dirname, join, sep } from "node:path";
import type { PackageSet, Runtime, ToolEntry } from "../manifest/manifest.ts";
import { parseNodeRequirement } from "../manifest/requirements/node.ts";
import { NodeLockError } from "../manifest/requirements/node-locked.ts";
import { parseRequirement } from "../manifest/requirements/python.ts";
import {
  type HashedRequirement,
  RequirementsError,
  formatRequirements,
  parseRequirementsFile,
} from "../manifest/requirements/python-file.ts";
import { EnvironmentError, type EnvironmentPlan, type Interpreter } from "./environments.ts";
import { environmentKey } from "./key.ts";
import { readNodeLock } from "./node-lock.ts";

/** Largest requirements file or lockfile, in bytes. */
const maxFileBytes = 8 * 1024 * 1024;

/** What plans are made with. */
export interface PlanOptions {
  /** What paths of the tool's files are relative to. */
  readonly directory: string;
  /** Hash of the registry settings that decide what is installed. */
  fingerprint(runtime: Runtime): Promise<string>;
  interpreterOf(tool: ToolEntry): Promise<Interpreter>;
}

/** The plan of a tool that names packages. Throws EnvironmentError, with a public reason. */
export async function planOf(
  tool: ToolEntry,
  packages: PackageSet,
  options: PlanOptions,
): Promise<EnvironmentPlan> {
  const interpreter = await options.interpreterOf(tool);
  const contentOf = tool.runtime === "python" ? pythonContent : nodeContent;
  const content = await contentOf(packages, options.directory);
  const parts = {
    runtime: tool.runtime,
    interpreter,
    runsScripts: packages.runsScripts,
    ...content,
  };
  return { ...parts, key: environmentKey(parts, await options.fingerprint(tool.runtime)) };
}

type Content = Pick<EnvironmentPlan, "kind" | "files" | "names" | "title">;

/** What a Python tool requires, beside what a `uv.lock` does. Throws EnvironmentError. */
export async function pythonRequirements(
  packages: PackageSet,
  directory: string,
): Promise<readonly HashedRequirement[]> {
  const { requirementsFile: path, lockfile } = packages;
  const listed = packages.requirements.flatMap((text) => {
    const parsed = parseRequirement(text);
    return parsed === undefined ? [] : [{ ...parsed, hashes: [] }];
  });
  const file = path ?? lockfile;
  if (file === undefined) return listed;
  const inFile = inRequirementsFile(file, await readBelow(directory, file));
  return [...listed, ...inFile];
}

async function pythonContent(packages: PackageSet, directory: string): Promise<Content> {
  const { lockfile } = packages;
  if (lockfile?.endsWith("uv.lock")) return uvContent(lockfile, directory);
  const requirements = await pythonRequirements(packages, directory);
  const unhashed = requirements.find(({ hashes }) => hashes.length === 0);
  if (lockfile !== undefined && unhashed !== undefined)
    throw refused(`${lockfile}: ${unhashed.name} has no --hash; a lockfile has one for each line`);
  const text = formatRequirements(requirements);
  return {
    kind: lockfile === undefined ? "requirements" : "hashed",
    files: new Map([["requirements.txt", text]]),
    names: requirements.map(({ name }) => name),
    title: lockfile ?? packages.requirementsFile ?? packages.requirements.join(", "),
  };
}

/** uv reads the lock together with the project that it is of; names are known after its export. */
async function uvContent(lockfile: string, directory: string): Promise<Content> {
  const project = join(dirname(lockfile), "pyproject.toml");
  const [lock, toml] = await Promise.all([
    readBelow(directory, lockfile),
    readBelow(directory, project),
  ]);
  const files = new Map([
    ["uv.lock", lock],
    ["pyproject.toml", toml],
  ]);
  return { kind: "uv-lock", files, names: [], title: lockfile };
}

async function nodeContent(packages: PackageSet, directory: string): Promise<Content> {
  const { lockfile } = packages;
  if (lockfile !== undefined) {
    try {
      const { names, files } = readNodeLock(await readBelow(directory, lockfile));
      return { kind: "npm-lock", files, names, title: lockfile };
    } catch (error) {
      if (error instanceof NodeLockError) throw refused(`${lockfile}: ${error.message}`);
      throw error;
    }
  }
  const found = packages.requirements.flatMap((text) => parseNodeRequirement(text) ?? []);
  const dependencies = Object.fromEntries(found.map(({ name, range }) => [name, range]));
  const text = JSON.stringify({ name: "environment", private: true, dependencies });
  return {
    kind: "npm",
    files: new Map([["package.json", text]]),
    names: found.map(({ name }) => name),
    title: packages.requirements.join(", "),
  };
}

function inRequirementsFile(path: string, text: string) {
  try {
    return parseRequirementsFile(text);
  } catch (error) {
    if (error instanceof RequirementsError) throw refused(`${path}: ${error.message}`);
    throw error;
  }
}

/** Reads a regular file that lies below the directory of tools. Throws EnvironmentError. */
async function readBelow(directory: string, path: string): Promise<string> {
  const [root, real] = await Promise.all(
    [directory, join(directory, path)].map((each) => realpath(each).catch(() => undefined)),
  );
  if (root === undefined || real === undefined) throw refused(`${path} is not there`);
  if (!real.startsWith(root + sep))
    throw refused(`${path} is a link to outside of the directory of tools`);
  const flags = constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW;
  await using file = await open(real, flags).catch((error: unknown) => {
    throw refused(`${path} cannot be read (${(error as NodeJS.ErrnoException).code})`);
  });
  const stats = await file.stat();
  if (!stats.isFile()) throw refused(`${path} is not a file`);
  if (stats.size > maxFileBytes) throw refused(`${path} has more than ${maxFileBytes} bytes`);
  return await file.readFile("utf8");
}

/** A problem of the tool's own files, which its callers may know. */
function refused(reason: string): EnvironmentError {
  return new EnvironmentError(reason, { publicReason: "its list of packages cannot be used" });
}
