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
import { layoutOf, usualToolsDir } from "../../tools-layout.ts";
import { quote, shortPath, typedCommand } from "../../options/typed-command.ts";
import { withEntry } from "./manifest-entry.ts";
import { type ToolNames, nodeNames, pythonClassName, pythonNames } from "./names.ts";
import { readProfiles } from "../profiles.ts";
import { type Shape, shapesOf } from "./shapes.ts";
import { exampleArgs, nodeCompanions, toolFiles } from "./templates.ts";

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
  readonly shape: Shape;
  /** Of the manifest; where tools usually are unless given. */
  readonly dir?: string;
}

/** Makes the files. Throws UsageError for what is there already; then nothing is made. */
export async function newTool(
  tool: string,
  options: ToolNewOptions,
  context: Context,
): Promise<number> {
  const { runtime, shape } = options;
  if (!shapesOf[runtime].includes(shape)) {
    const known = shapesOf[runtime].join(", ");
    throw new UsageError(`--shape ${shape} is none of --runtime ${runtime}; accepted: ${known}`);
  }
  const dir = options.dir ?? (await usualToolsDir());
  const maker = await makerOf(tool, options, context);
  const files = toolFiles(runtime, shape, tool, maker.names);
  const layout = await layoutOf(dir);
  const sources = relative("", runtime === "python" ? layout.pythonDir : layout.nodeDir) || ".";
  const toolPath = join(sources, files.tool.name);
  const testPath = join(sources, files.test.name);
  const manifestPath = relative("", layout.manifestPath);

  const manifest = await readIfThere(manifestPath);
  const entry = {
    runtime,
    module: runtime === "python" ? maker.names.file : files.tool.name,
    [shape === "class" ? "class_name" : "function"]: maker.names.callable,
    description: "Count the words of a text",
    timeout_seconds: timeoutSeconds,
  };
  const profiles = await readProfiles(context.environment);
  const extended = withEntry(manifestPath, manifest, tool, entry, profiles);
  await refuseExisting([toolPath, testPath]);
  await mkdir(sources, { recursive: true });
  const created = await createAll([
    [toolPath, files.tool.text],
    [testPath, files.test.text],
    ...(await maker.companions(sources)),
  ]);
  await writeFile(manifestPath, extended);

  const { out } = context;
  for (const path of created) out.line(printable(`created ${path}`));
  out.line(printable(`${manifest === undefined ? "created" : "extended"} ${manifestPath}`));
  const isUsual = relative(await usualToolsDir(), dir) === "";
  const target = `${toolPath}:${maker.names.callable}`;
  const harness = typedCommand("harness", harnessCommandPath, context.environment);
  const place = { harness, directory: isUsual ? undefined : quote(dir), target };
  out.line(nextSteps(tool, place, maker.typesCommand(testPath)));
  return exit.success;
}

type NewFile = readonly [path: string, text: string];

/** What differs from language to language. */
interface Maker {
  readonly names: ToolNames;
  /** Files that the tools of this language need once, where they are not there yet. */
  companions(directory: string): Promise<readonly NewFile[]>;
  /** A command that lets editors know the types that a tool imports, where they may not yet. */
  typesCommand(path: string): string | undefined;
}

async function makerOf(
  tool: string,
  { runtime, shape }: ToolNewOptions,
  { environment }: Context,
): Promise<Maker> {
  if (runtime === "node") {
    return {
      names: nodeNames(tool),
      companions: (directory) => missingOf(directory, nodeCompanions),
      typesCommand: (path) => {
        if (resolves(path, runtimeModule) && resolves(path, nodeTypesFile)) return undefined;
        // A team shares the entry of package.json: a version, but in a checkout, which knows no
        // other than itself.
        const own = isCheckout ? quote(nodeToolPackage) : `secure-tool-runtime@${packageVersion()}`;
        const packages = `${own} ${nodeTypes}`;
        return `npm install --prefix ${quote(dirname(path))} --save-dev ${packages}`;
      },
    };
  }
  const names = await pythonNames(tool, await findPython(environment));
  return {
    names: shape === "class" ? { ...names, callable: pythonClassName(names.callable) } : names,
    companions: async () => [],
    typesCommand: () => {
      const install = `pip install ${quote(shortPath(pythonWheel()))}`;
      // The published package has the wheel already.
      return isCheckout ? `npm run wheel --prefix ${quote(packageRoot)} && ${install}` : install;
    },
  };
}

/** The files that are not there yet. */
async function missingOf(
  directory: string,
  texts: Readonly<Record<string, string>>,
): Promise<readonly NewFile[]> {
  const missing: NewFile[] = [];
  for (const [name, text] of Object.entries(texts)) {
    const path = join(directory, name);
    if (!(await isThere(path))) missing.push([path, text]);
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
    for (const [path, text] of files) {
      await writeFile(path, text, { flag: "wx" });
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

/** Where a new tool is, as words of a command line. */
interface Place {
  readonly harness: string;
  /** Of the manifest; undefined where commands look by themselves. */
  readonly directory: string | undefined;
  /** `FILE:NAME`. */
  readonly target: string;
}

function nextSteps(
  tool: string,
  { harness, directory, target }: Place,
  typesCommand: string | undefined,
): string {
  const args = quote(exampleArgs);
  return [
    "",
    "Test it, in its sandbox and without a broker:",
    `  ${harness} tool test${directory === undefined ? "" : ` ${directory}`}`,
    "Run it once:",
    `  ${harness} tool run ${quote(target)} --args ${args}`,
    "Serve it, and see what it prints:",
    `  ${harness} dev${directory === undefined ? "" : ` --tools ${directory}`}`,
    "Call it, in another terminal; what you change holds from the next call on:",
    `  ${harness} invoke --tool ${quote(tool)} --args ${args}`,
    ...(typesCommand === undefined
      ? []
      : ["Let your editor know the types, once:", `  ${typesCommand}`]),
  ].join("\n");
}
