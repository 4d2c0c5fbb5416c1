/**
 * The tool languages of this worker: those whose tools it has a directory of.
 */
import { stat } from "node:fs/promises";
import type { Runtime, ToolEntry } from "../manifest/manifest.ts";
import type { Refusal } from "../protocol/refusal.ts";
import { SandboxError } from "../sandbox/sandbox.ts";
import type { Interpreter, ToolRunner } from "./runner.ts";

/** A language that can be opened. */
export interface Language {
  /** Directory with the tools' modules. */
  readonly toolsDir: string;
  /** Variable that names the directory. */
  readonly variable: string;
  /** Opens its runner; the caller owns it. Throws SandboxError. */
  open(): Promise<ToolRunner>;
}

/** The runners of a worker. Disposing disposes them. */
export interface Runners extends AsyncDisposable {
  readonly byRuntime: ReadonlyMap<Runtime, ToolRunner>;
  /** Why a tool cannot be served by this host, or undefined when it can. */
  refuse(tool: ToolEntry, signal: AbortSignal): Promise<Refusal | undefined>;
  /** The interpreter of a tool. Throws SandboxError when there is none, or it cannot be used. */
  interpreterOf(tool: ToolEntry): Promise<Interpreter>;
}

/**
 * Opens the languages that there is a directory of tools for; the interpreters of others are not
 * looked at. Throws SandboxError when there is no such directory at all: then nothing could be
 * served.
 */
export async function openRunners(
  languages: Readonly<Record<Runtime, Language>>,
): Promise<Runners> {
  await using opened = new AsyncDisposableStack();
  const byRuntime = new Map<Runtime, ToolRunner>();
  for (const { toolsDir, open } of Object.values(languages)) {
    if (!(await isDirectory(toolsDir))) continue;
    const runner = opened.use(await open());
    byRuntime.set(runner.runtime, runner);
  }
  if (byRuntime.size === 0) {
    const { python, node, executable } = languages;
    const others = [node, executable].map(({ toolsDir, variable }) => `${toolsDir} (${variable})`);
    throw new SandboxError(
      `${python.toolsDir} is not a directory, and neither is ${others.join(" or ")}`,
      { setting: "toolsPythonDir" },
    );
  }
  const owned = opened.move();
  return {
    byRuntime,
    refuse: async (tool, signal) => {
      const { toolsDir, variable } = languages[tool.runtime];
      const runner = byRuntime.get(tool.runtime);
      if (runner !== undefined) return runner.refuse(tool, signal);
      return {
        reason: `${variable} is ${toolsDir}, which was not a directory when the worker started`,
        publicReason: `the worker has no directory of ${tool.runtime} tools`,
      };
    },
    interpreterOf: async (tool) => {
      const interpreter = await byRuntime.get(tool.runtime)?.interpreterOf?.(tool);
      if (interpreter !== undefined) return interpreter;
      throw new SandboxError(`the worker has no interpreter of ${tool.runtime} tools`);
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

async function isDirectory(path: string): Promise<boolean> {
  const stats = await stat(path).catch(() => undefined);
  return stats?.isDirectory() === true;
}
