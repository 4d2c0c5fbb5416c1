/**
 * What a sandbox sees of the directory of tools: all of it, or the one module of a tool that is
 * isolated.
 */
import { realpath, stat } from "node:fs/promises";
import { basename, dirname, join, sep } from "node:path";
import type { ToolEntry } from "../manifest/manifest.ts";
import type { Profile } from "../sandbox/profile.ts";
import { isolates } from "../sandbox/registry.ts";
import type { ReadOnlyMount, SandboxBackend } from "../sandbox/sandbox.ts";
import type { CodeLease } from "./tool-code.ts";

/** Mounts whose sources are held for them. Disposed after the sandbox is gone. */
export interface SharedTools extends AsyncDisposable {
  readonly mounts: readonly ReadOnlyMount[];
}

/** What of the tools is to be seen, and where. */
export interface VisibleTools {
  /** Directory with the tools' modules on the host. */
  readonly code: Pick<CodeLease, "directory" | "isReadable">;
  /** The same inside. */
  readonly target: string;
  /** Paths below it, or undefined for the whole of it. Empty: nothing. */
  readonly only: readonly string[] | undefined;
}

/**
 * Whether a call sees its own module only. A backend that isolates nothing has no way to hide the
 * others.
 */
export function isIsolated({ isolate }: Pick<ToolEntry, "isolate">, profile: Profile): boolean {
  return isolate && isolates(profile);
}

/** The mounts for it, with its present content. The caller owns them. Throws SandboxError. */
export async function shareTools(
  backend: Pick<SandboxBackend, "share">,
  { code: { directory, isReadable }, target, only }: VisibleTools,
): Promise<SharedTools> {
  await using held = new AsyncDisposableStack();
  const mounts: ReadOnlyMount[] = [];
  for (const path of only ?? ["."]) {
    const own = join(directory, path);
    const source = isReadable ? own : held.use(await backend.share(own)).source;
    mounts.push({ source, target: join(target, path) });
  }
  const owned = held.move();
  return { mounts, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}

/**
 * What is there of a Python module: its file or its package, and the `__init__.py` of the packages
 * that it lies in. Nothing when the module is not in the directory at all, but installed with the
 * interpreter, or where it is empty.
 */
export async function pythonModuleFiles(
  toolsDir: string,
  module: string,
): Promise<readonly string[]> {
  if (module === "") return [];
  const names = module.split(".");
  const path = names.join(sep);
  const parents = names.slice(0, -1).map((_, index) => names.slice(0, index + 1).join(sep));
  const packages = await existing(
    toolsDir,
    parents.map((parent) => join(parent, "__init__.py")),
  );
  // Python prefers a package to a file of the same name, if it has an __init__.py.
  const [isPackage] = await existing(toolsDir, [join(path, "__init__.py")]);
  const own = isPackage === undefined ? await existing(toolsDir, [`${path}.py`]) : [path];
  return [...packages, ...own];
}

/**
 * The file of a Node module, and the package.json that says what kind of module it is: the nearest
 * one above it, as Node looks for it ("Determining module system"). Nothing for an empty module.
 */
export async function nodeModuleFiles(
  toolsDir: string,
  module: string,
): Promise<readonly string[]> {
  if (module === "") return [];
  const own = await existing(toolsDir, [module]);
  for (let directory = dirname(module); basename(directory) !== "node_modules";) {
    const [found] = await existing(toolsDir, [join(directory, "package.json")]);
    if (found !== undefined) return [...own, found];
    if (directory === ".") break;
    directory = dirname(directory);
  }
  return own;
}

/** The paths that are there and do not lead out of the directory. */
async function existing(toolsDir: string, paths: readonly string[]): Promise<readonly string[]> {
  const root = await realPathOf(toolsDir);
  if (root === undefined) return [];
  const found = await Promise.all(
    paths.map(async (path) => {
      const real = await realPathOf(join(root, path));
      const isThere = real?.startsWith(root + sep) === true && (await stat(real)).isFile();
      return isThere ? [path] : [];
    }),
  );
  return found.flat();
}

function realPathOf(path: string): Promise<string | undefined> {
  return realpath(path).catch(() => undefined);
}
