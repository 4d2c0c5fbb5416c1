/**
 * The tool languages of this worker: those whose tools it has a directory of.
 */
import { stat } from "node:fs/promises";
import type { Runtime, ToolEntry } from "../manifest/manifest.ts";
import { entriesOf } from "../manifest/programs.ts";
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
  /** The languages that there is a directory of tools for. */
  readonly withDirectory: ReadonlySet<Runtime>;
  /** Why a tool cannot be served by this host, or undefined when it can. */
  refuse(tool: ToolEntry, signal: AbortSignal): Promise<Refusal | undefined>;
  /** The interpreter of a tool. Throws SandboxError when there is none, or it cannot be used. */
  interpreterOf(tool: ToolEntry): Promise<Interpreter>;
}

/**
 * Opens the languages that there is a directory of tools for; the interpreters of others are not
 * looked at. Throws SandboxError when there is no such directory at all: then nothing could be
 * served.
 *
 * @param hasToolsets whether tools of every language may lie in toolsets, so that all are opened; a
 *   language without a directory may then lack its interpreter
 */
export async function openRunners(
  languages: Readonly<Record<Runtime, Language>>,
  hasToolsets = false,
): Promise<Runners> {
  await using opened = new AsyncDisposableStack();
  const byRuntime = new Map<Runtime, ToolRunner>();
  const withDirectory = new Set<Runtime>();
  const failures = new Map<Runtime, string>();
  for (const [name, { toolsDir, open }] of Object.entries(languages)) {
    const runtime = name as Runtime;
    if (await isDirectory(toolsDir)) withDirectory.add(runtime);
    else if (!hasToolsets) continue;
    try {
      byRuntime.set(runtime, opened.use(await open()));
    } catch (error) {
      if (withDirectory.has(runtime) || !(error instanceof SandboxError)) throw error;
      failures.set(runtime, error.message);
    }
  }
  if (byRuntime.size === 0) {
    const { python, node, executable } = languages;
    const others = [node, executable].map(({ toolsDir, variable }) => `${toolsDir} (${variable})`);
    throw new SandboxError(
      `${python.toolsDir} is not a directory, and neither is ${others.join(" or ")}`,
      { setting: "toolsPythonDir" },
    );
  }
  const refuseOne = async (tool: ToolEntry, signal: AbortSignal): Promise<Refusal | undefined> => {
    const { runtime, toolset } = tool;
    const { toolsDir, variable } = languages[runtime];
    const runner = byRuntime.get(runtime);
    if (runner !== undefined && (toolset !== undefined || withDirectory.has(runtime)))
      return runner.refuse(tool, signal);
    const failure = failures.get(runtime);
    if (toolset !== undefined && failure !== undefined)
      return { reason: failure, publicReason: `the worker runs no ${runtime} tools` };
    return {
      reason: `${variable} is ${toolsDir}, which was not a directory when the worker started`,
      publicReason: `the worker has no directory of ${runtime} tools`,
    };
  };
  const owned = opened.move();
  return {
    byRuntime,
    withDirectory,
    refuse: async (tool, signal) => {
      for (const entry of entriesOf(tool)) {
        const refusal = await refuseOne(entry, signal);
        if (refusal !== undefined) return refusal;
      }
      return undefined;
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
