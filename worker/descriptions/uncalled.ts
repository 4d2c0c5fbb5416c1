/**
 * Runs a tool runner that loads a tool without calling it: to check it, or to describe it.
 */
import { type Run, runToExit } from "../invocation/steps/run-to-exit.ts";
import type { ToolEntry } from "../manifest/manifest.ts";
import type { ToolSandbox } from "../pool/starts.ts";
import { type PreparedTool, runnerArgs } from "../runners/runner.ts";
import type { Sandbox } from "../sandbox/sandbox.ts";
import type { JsonObject } from "../support/json/json.ts";

/** Stands for the caller of a call. */
const nobody = { appName: "", userId: "", sessionId: "" };

/** What the runner is started with. */
export interface UncalledRun {
  readonly entry: ToolEntry;
  readonly tool: Pick<PreparedTool, "toolsPath">;
  readonly sandbox: Pick<Sandbox, "workDir" | "locate">;
  readonly start: ToolSandbox["start"];
  /** The member of `runner_args.json` that says what to do in place of a call. */
  readonly task: "load_only" | "describe";
  /** May hold secrets. */
  readonly toolConfig: JsonObject;
  readonly maxResultBytes: number;
  readonly limitMs: number;
}

/** Runs it to its end. Throws SandboxError, and the signal's reason. */
export async function runUncalled(run: UncalledRun, signal: AbortSignal): Promise<Run> {
  const { entry, tool, sandbox, task, toolConfig, maxResultBytes } = run;
  const { workDir } = sandbox;
  const paths = { tools: tool.toolsPath, locate: (path: string) => sandbox.locate(path) };
  const call = { args: {}, toolConfig, taskId: task, caller: nobody };
  const args = runnerArgs(entry, call, new Map(), paths, { maxResultBytes });
  const execution = await run.start(JSON.stringify({ ...args, [task]: true }), signal);
  // A full pipe would hold the runner up.
  using _status = workDir.readStatuses(() => undefined);
  return await runToExit(execution, run.limitMs, signal);
}
