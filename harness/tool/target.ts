/**
 * `FILE:NAME` of a command line as a tool: its language, the directory that its sandbox sees, and
 * what a manifest would say.
 */
import { readFile, stat } from "node:fs/promises";
import { basename, dirname, extname, relative, resolve, sep } from "node:path";
import type { Runtime, ToolCallable } from "../../worker/manifest/manifest.ts";
import { UsageError } from "../context.ts";

/** A function or class in a file. */
export interface Target {
  readonly runtime: Runtime;
  /** Absolute; the sandbox sees all of it, read-only. */
  readonly toolsDir: string;
  /** As a manifest names it, from `toolsDir` on. */
  readonly module: string;
  readonly callable: ToolCallable;
}

/** How a target is named. */
export interface TargetOptions {
  /** `FILE:NAME`. */
  readonly target: string;
  /** Directory that the sandbox sees; the file's own unless given. */
  readonly toolsDir?: string;
  /** Whether NAME is a class although the file does not define it. */
  readonly isClass: boolean;
}

const runtimes: Readonly<Record<string, Runtime>> = {
  ".py": "python",
  ".js": "node",
  ".mjs": "node",
  ".ts": "node",
  ".mts": "node",
};

/** Finds the file. Throws UsageError. */
export async function findTarget(options: TargetOptions): Promise<Target> {
  const { file, name } = split(options.target);
  const runtime = runtimes[extname(file)];
  if (runtime === undefined) {
    const known = Object.keys(runtimes).join(", ");
    throw new UsageError(
      `${file} is in no language of tools; the file's name must end in ${known}`,
    );
  }
  const stats = await stat(file).catch(() => undefined);
  if (stats === undefined) throw new UsageError(`${file} does not exist`);
  if (!stats.isFile()) throw new UsageError(`${file} is not a file`);
  const toolsDir = resolve(options.toolsDir ?? dirname(file));
  return {
    runtime,
    toolsDir,
    module: moduleOf(resolve(file), toolsDir, runtime),
    callable: { kind: await kindOf(file, name, runtime, options.isClass), name },
  };
}

function split(target: string): { readonly file: string; readonly name: string } {
  const at = target.lastIndexOf(":");
  const [file, name] = [target.slice(0, Math.max(at, 0)), target.slice(at + 1)];
  if (file === "" || name === "") {
    throw new UsageError(
      `"${target}" names no function; accepted: FILE:FUNCTION, as in words.py:count`,
    );
  }
  return { file, name };
}

/** Python imports by dots, Node loads a path. */
function moduleOf(file: string, toolsDir: string, runtime: Runtime): string {
  const path = relative(toolsDir, file);
  if (path.startsWith(`..${sep}`)) {
    throw new UsageError(
      `${file} is not below the directory ${toolsDir} that the sandbox would see`,
    );
  }
  if (runtime === "node") return path;
  const parts = path.slice(0, -extname(path).length).split(sep);
  const odd = parts.find((part) => !/^[A-Za-z_]\w*$/.test(part));
  if (odd === undefined) return parts.join(".");
  throw new UsageError(
    `Python cannot import ${basename(file)}: "${odd}" has other characters than letters, digits and _, or begins with a digit`,
  );
}

/**
 * A Python class shows by its definition; one that is imported or made otherwise has to be told.
 */
async function kindOf(
  file: string,
  name: string,
  runtime: Runtime,
  isClass: boolean,
): Promise<ToolCallable["kind"]> {
  if (runtime === "node") {
    if (isClass) throw new UsageError("--class is for Python; a Node tool is an exported function");
    return "function";
  }
  if (isClass) return "class";
  const definitions = (await readFile(file, "utf8")).matchAll(/^class\s+(\w+)/gm);
  return [...definitions].some(([, defined]) => defined === name) ? "class" : "function";
}
