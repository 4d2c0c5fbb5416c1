/**
 * `harness tool new`: a tool, its test and its entry in the manifest, and what to type next.
 */
import { createRequire } from "node:module";
import { access, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { dirname, join, relative, resolve } from "node:path";
import type { Runtime } from "../../../worker/manifest/manifest.ts";
import { type Context, UsageError, exit } from "../../context.ts";
import {
  harnessCommandPath,
  isCheckout,
  nodeToolPackage,
  packageRoot,
  packageVersion,
  pythonWheel,
} from "../../package.ts";
import { findPython } from "../../prerequisites.ts";
import { printable } from "../../invoke/screen.ts";
import { type ToolsLayout, layoutOf, usualToolsDir } from "../../tools-layout.ts";
import { quote, shortPath, typedCommand } from "../../options/typed-command.ts";
import { withEntry } from "./manifest-entry.ts";
import { readProfiles } from "../profiles.ts";
import { nodeNames, pythonClassName, pythonNames } from "./names.ts";
import type { Scaffold } from "./scaffold.ts";
import { type Shape, executableShapes, nodeShapes, pythonShapes, shapesOf } from "./shapes.ts";
import { executableScaffold } from "./templates/executable.ts";
import { nodeCompanions, nodeScaffold } from "./templates/node.ts";
import { pythonScaffold } from "./templates/python.ts";

/** Seconds that the manifest grants a new tool. */
const timeoutSeconds = 30;

/** The types of the oldest Node that tools run under. */
const nodeTypes = "@types/node@24";

/** What is found where an editor finds the types. */
const runtimeModule = "secure-tool-runtime/tool";
const nodeTypesFile = "@types/node/package.json";

/** The command line, without the name. */
export interface ToolNewOptions {
  readonly runtime: Runtime;
  /** The first of the language unless given. */
  readonly shape?: Shape;
  /** Of the manifest; where tools usually are unless given. */
  readonly dir?: string;
}

/** Makes the files. Throws UsageError for what is there already; then nothing is made. */
export async function newTool(
  tool: string,
  options: ToolNewOptions,
  context: Context,
): Promise<number> {
  const { runtime } = options;
  const shape = options.shape ?? shapesOf[runtime][0];
  const dir = options.dir ?? (await usualToolsDir());
  const scaffold = await scaffoldOf(tool, runtime, shape, context);
  const layout = await layoutOf(dir);
  const sources = relative("", sourcesOf(layout, runtime)) || ".";
  const files = scaffold.files.map((file) => ({ ...file, path: join(sources, file.name) }));
  const manifestPath = relative("", layout.manifestPath);

  const manifest = await readIfThere(manifestPath);
  const entry = {
    runtime,
    ...scaffold.entry,
    // Programs, and several tools of one entry, describe themselves.
    ...(runtime !== "executable" &&
      !("tools" in scaffold.entry) && { description: "Count the words of a text" }),
    timeout_seconds: timeoutSeconds,
  };
  const profiles = await readProfiles(context.environment);
  const extended = withEntry(manifestPath, manifest, tool, entry, profiles, scaffold.tools);
  await refuseExisting(files.map(({ path }) => path));
  for (const { path } of files) await mkdir(dirname(path), { recursive: true });
  const companions = runtime === "node" ? await missingOf(sources, nodeCompanions) : [];
  const created = await createAll([...files, ...companions]);
  await writeFile(manifestPath, extended);

  const { out } = context;
  for (const path of created) out.line(printable(`created ${path}`));
  out.line(printable(`${manifest === undefined ? "created" : "extended"} ${manifestPath}`));
  const isUsual = relative(await usualToolsDir(), dir) === "";
  const place = {
    harness: typedCommand("harness", harnessCommandPath, context.environment),
    directory: isUsual ? undefined : quote(dir),
    sources,
    types: typesCommand(
      runtime,
      files.map(({ path }) => path),
    ),
  };
  out.line(nextSteps(scaffold, place));
  return exit.success;
}

function sourcesOf({ pythonDir, nodeDir, executableDir }: ToolsLayout, runtime: Runtime): string {
  return { python: pythonDir, node: nodeDir, executable: executableDir }[runtime];
}

/** Throws UsageError for a shape that the language does not have. */
async function scaffoldOf(
  tool: string,
  runtime: Runtime,
  shape: Shape,
  { environment }: Context,
): Promise<Scaffold> {
  switch (runtime) {
    case "python": {
      const checked = shapeOf(pythonShapes, shape, runtime);
      const names = await pythonNames(tool, await findPython(environment));
      const isClass = checked === "class" || checked === "provider";
      const callable = isClass ? pythonClassName(names.callable) : names.callable;
      return pythonScaffold(checked, tool, { ...names, callable });
    }
    case "node":
      shapeOf(nodeShapes, shape, runtime);
      return nodeScaffold(tool, nodeNames(tool));
    case "executable":
      return executableScaffold(shapeOf(executableShapes, shape, runtime), tool);
  }
}

function shapeOf<T extends Shape>(known: readonly T[], shape: Shape, runtime: Runtime): T {
  const found = known.find((each) => each === shape);
  if (found !== undefined) return found;
  const text = `--shape ${shape} is none of --runtime ${runtime}; accepted: ${known.join(", ")}`;
  throw new UsageError(text);
}

/** A command that lets editors know the types that a tool imports, where they may not yet. */
function typesCommand(runtime: Runtime, [path = ""]: readonly string[]): string | undefined {
  if (runtime === "executable") return undefined;
  if (runtime === "python") {
    const install = `pip install ${quote(shortPath(pythonWheel()))}`;
    // The published package has the wheel already.
    return isCheckout ? `npm run wheel --prefix ${quote(packageRoot)} && ${install}` : install;
  }
  if (resolves(path, runtimeModule) && resolves(path, nodeTypesFile)) return undefined;
  // A team shares the entry of package.json: a version, but in a checkout, which knows no other
  // than itself.
  const own = isCheckout ? quote(nodeToolPackage) : `secure-tool-runtime@${packageVersion()}`;
  return `npm install --prefix ${quote(dirname(path))} --save-dev ${own} ${nodeTypes}`;
}

/** A file to be, by its path from here. */
interface NewFile {
  readonly path: string;
  readonly text: string;
  readonly mode?: number;
}

/** The files that are not there yet. */
async function missingOf(
  directory: string,
  texts: Readonly<Record<string, string>>,
): Promise<readonly NewFile[]> {
  const missing: NewFile[] = [];
  for (const [name, text] of Object.entries(texts)) {
    const path = join(directory, name);
    if (!(await isThere(path))) missing.push({ path, text });
  }
  return missing;
}

/**
 * Whether Node finds a module of a package from a file: it is installed above it, or the file lies
 * in it.
 */
function resolves(path: string, module: string): boolean {
  try {
    createRequire(resolve(path)).resolve(module);
    return true;
  } catch {
    return false;
  }
}

async function readIfThere(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw new UsageError(`${path} cannot be read: ${String(error)}`, { cause: error });
  }
}

async function refuseExisting(paths: readonly string[]): Promise<void> {
  for (const path of paths) if (await isThere(path)) throw alreadyThere(path);
}

function isThere(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}

/** All of the files or none: whoever was quicker keeps what is there. Returns their paths. */
async function createAll(files: readonly NewFile[]): Promise<readonly string[]> {
  const created: string[] = [];
  try {
    for (const { path, text, mode } of files) {
      await writeFile(path, text, { flag: "wx", ...(mode !== undefined && { mode }) });
      created.push(path);
    }
    return created;
  } catch (error) {
    for (const path of created) await rm(path);
    const { code, path = "" } = error as NodeJS.ErrnoException;
    throw code === "EEXIST" ? alreadyThere(path) : error;
  }
}

function alreadyThere(path: string): UsageError {
  return new UsageError(`${path} is there already, and is not overwritten`);
}

/** Where a new tool is, as words of command lines. */
interface Place {
  readonly harness: string;
  /** Of the manifest; undefined where commands look by themselves. */
  readonly directory: string | undefined;
  /** Of the tool's files. */
  readonly sources: string;
  /** Installs types; undefined where there are none, or they are there. */
  readonly types: string | undefined;
}

function nextSteps({ files, tools, target, call, buildCommand }: Scaffold, place: Place): string {
  const { harness, directory, sources, types } = place;
  const [tool = ""] = tools;
  const choice = tools.length > 1 ? ` --tool ${quote(tool)}` : "";
  const path = join(sources, files[0]?.name ?? "");
  const step = (title: string, command: string | undefined): readonly string[] =>
    command === undefined ? [] : [title, `  ${command}`];
  return [
    "",
    ...step("Build it, after each change:", buildCommand?.(path)),
    ...step(
      "Test it, in its sandbox and without a broker:",
      `${harness} tool test${directory === undefined ? "" : ` ${directory}`}`,
    ),
    ...step(
      "Run it once:",
      `${harness} tool run ${quote(join(sources, target))}${choice} ${call(path)}`,
    ),
    ...step(
      "Serve it, and see what it prints:",
      `${harness} dev${directory === undefined ? "" : ` --tools ${directory}`}`,
    ),
    ...step(
      "Call it, in another terminal; what you change holds from the next call on:",
      `${harness} invoke --tool ${quote(tool)} ${call(path)}`,
    ),
    ...step("Let your editor know the types, once:", types),
  ].join("\n");
}
