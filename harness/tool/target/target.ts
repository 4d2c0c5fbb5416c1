/**
 * What a command line names: a function or class of a file, a program, or the tools of a manifest.
 */
import { readFile, stat } from "node:fs/promises";
import { basename, dirname, extname, relative, resolve, sep } from "node:path";
import type { Runtime, ToolCallable } from "../../../worker/manifest/manifest.ts";
import { entryNameSchema } from "../../../worker/protocol/operator-fields.ts";
import { UsageError } from "../../context.ts";
import { type ToolsLayout, hasManifest, isDirectory, layoutOf } from "../../tools-layout.ts";

/** A function or class in a file, or a program. */
export interface CodeTarget {
  readonly kind: "code";
  readonly runtime: Runtime;
  /** Absolute; the sandbox sees all of it, read-only. */
  readonly toolsDir: string;
  /** As a manifest names it, from `toolsDir` on. */
  readonly module: string;
  readonly callable: ToolCallable;
  /** The one that is meant of several tools, which a class or a program may have. */
  readonly tool: string | undefined;
}

/** Tools of a manifest. */
export interface ManifestTarget {
  readonly kind: "manifest";
  /** As it was given. */
  readonly directory: string;
  readonly layout: ToolsLayout;
  /** The one that is meant. */
  readonly tool: string | undefined;
}

export type Target = CodeTarget | ManifestTarget;

/** How a target is named. */
export interface TargetOptions {
  /** `FILE:NAME`, a program, or a directory. */
  readonly target: string;
  /** The tool that is meant of several. */
  readonly tool?: string | undefined;
  /** Directory that the sandbox sees; the file's own unless given. */
  readonly toolsDir?: string | undefined;
  /** Whether NAME is a class although the file does not define it. */
  readonly isClass: boolean;
}

/** Which targets there are, for messages. */
const accepted =
  "FILE:FUNCTION or FILE:CLASS, as in words.py:count; a program; the directory of a manifest";

const runtimes: Readonly<Record<string, Runtime>> = {
  ".py": "python",
  ".js": "node",
  ".mjs": "node",
  ".ts": "node",
  ".mts": "node",
};

const executableBits = 0o111;

/** Finds the file or the directory. Throws UsageError. */
export async function findTarget(options: TargetOptions): Promise<Target> {
  const { target, tool } = options;
  if (await isDirectory(target)) return await manifestTarget(options);
  const stats = await stat(target).catch(() => undefined);
  if (stats !== undefined) return programTarget(options, stats);
  const { file, name } = split(target);
  const runtime = runtimes[extname(file)];
  if (runtime === undefined) {
    const known = Object.keys(runtimes).join(", ");
    throw new UsageError(
      `${file} is in no language of tools; the file's name must end in ${known}`,
    );
  }
  await requireFile(file);
  const kind = await kindOf(file, name, runtime, options.isClass);
  if (tool !== undefined && kind === "function")
    throw new UsageError(`--tool is for what has several tools; ${name} is one function`);
  const toolsDir = resolve(options.toolsDir ?? dirname(file));
  const module = moduleOf(resolve(file), toolsDir, runtime);
  return { kind: "code", runtime, toolsDir, module, callable: { kind, name }, tool };
}

async function manifestTarget({ target, tool, ...others }: TargetOptions): Promise<ManifestTarget> {
  if (!(await hasManifest(target)))
    throw new UsageError(`the directory ${target} has no manifest.yaml; accepted: ${accepted}`);
  if (others.isClass || others.toolsDir !== undefined) {
    const option = others.isClass ? "--class" : "--tools-dir";
    throw new UsageError(`${option} is for a tool in a file; ${target} has a manifest`);
  }
  return { kind: "manifest", directory: target, layout: await layoutOf(target), tool };
}

function programTarget(
  { target, tool, isClass, toolsDir: given }: TargetOptions,
  { mode }: { readonly mode: number },
): CodeTarget {
  const isSource = runtimes[extname(target)] !== undefined;
  if (isClass || (isSource && (mode & executableBits) === 0))
    throw new UsageError(`"${target}" names no function or class; accepted: ${accepted}`);
  const toolsDir = resolve(given ?? dirname(target));
  const module = pathBelow(resolve(target), toolsDir);
  const callable = { kind: "program", name: basename(target) } as const;
  return { kind: "code", runtime: "executable", toolsDir, module, callable, tool };
}

function split(target: string): { readonly file: string; readonly name: string } {
  const at = target.lastIndexOf(":");
  const [file, name] = [target.slice(0, Math.max(at, 0)), target.slice(at + 1)];
  if (file === "" || name === "")
    throw new UsageError(`there is no "${target}"; accepted: ${accepted}`);
  return { file, name };
}

async function requireFile(file: string): Promise<void> {
  const stats = await stat(file).catch(() => undefined);
  if (stats === undefined) throw new UsageError(`${file} does not exist`);
  if (!stats.isFile()) throw new UsageError(`${file} is not a file`);
}

/** Python imports by dots, Node loads a path. */
function moduleOf(file: string, toolsDir: string, runtime: Runtime): string {
  const path = pathBelow(file, toolsDir);
  if (runtime === "node") return path;
  const parts = path.slice(0, -extname(path).length).split(sep);
  const odd = parts.find((part) => !/^[A-Za-z_]\w*$/.test(part));
  if (odd === undefined) return parts.join(".");
  throw new UsageError(
    `Python cannot import ${basename(file)}: "${odd}" has other characters than letters, digits and _, or begins with a digit`,
  );
}

function pathBelow(file: string, toolsDir: string): string {
  const path = relative(toolsDir, file);
  if (!path.startsWith(`..${sep}`)) return path;
  throw new UsageError(`${file} is not below the directory ${toolsDir} that the sandbox would see`);
}

/**
 * A Python class shows by its definition; one that is imported or made otherwise has to be told.
 */
async function kindOf(
  file: string,
  name: string,
  runtime: Runtime,
  isClass: boolean,
): Promise<"function" | "class"> {
  if (runtime === "node") {
    if (isClass) throw new UsageError("--class is for Python; a Node tool is an exported function");
    return "function";
  }
  if (isClass) return "class";
  const definitions = (await readFile(file, "utf8")).matchAll(/^class\s+(\w+)/gm);
  return [...definitions].some(([, defined]) => defined === name) ? "class" : "function";
}

/** What the one tool is called where its own name serves for nothing. */
const anyName = "tool";

/** The name by which a worker would serve the tool. */
export function servedName({ callable, tool }: CodeTarget): string {
  if (tool !== undefined) return tool;
  // The class of a provider has no tool of its name.
  const isName = callable.kind !== "class" && entryNameSchema.safeParse(callable.name).success;
  return isName ? callable.name : anyName;
}

/** Fields of a manifest's entry that say where the code is; `tools` are its tools by name. */
export function entryFields(
  { runtime, module, callable, tool }: CodeTarget,
  tools: readonly string[] = tool === undefined ? [] : [tool],
): Readonly<Record<string, string | readonly string[]>> {
  const { kind, name } = callable;
  const called = { [kind === "class" ? "class_name" : "function"]: name };
  return {
    runtime,
    ...(kind === "program" ? { executable: module } : { module, ...called }),
    ...(tools.length > 0 && { tools }),
  };
}
