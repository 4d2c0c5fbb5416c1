/**
 * What the command line says of debugging.
 */
import { type Context, UsageError } from "../../context.ts";
import type { DebugOptions } from "./debugged-backend.ts";
import type { Target } from "../target/target.ts";

/** The flags. */
export interface DebugFlags {
  /** Whether the tool gets the terminal, for pdb. */
  readonly debug?: boolean;
  /** Port on which Node waits for a debugger. */
  readonly inspect?: number;
}

export function isDebugged({ debug, inspect }: DebugFlags): boolean {
  return debug === true || inspect !== undefined;
}

/**
 * How the tool is debugged; undefined when it is not. Throws UsageError where its language has
 * another way.
 */
export function readDebugOptions(
  target: Target,
  { debug = false, inspect }: DebugFlags,
  { environment, err }: Context,
): DebugOptions | undefined {
  if (!debug && inspect === undefined) return undefined;
  if (target.kind === "manifest" || target.runtime === "executable") {
    const option = debug ? "--debug" : "--inspect";
    throw new UsageError(`${option} is for a function or a class, named as FILE:NAME`);
  }
  const { runtime, toolsDir } = target;
  if (debug && runtime === "node") {
    throw new UsageError("--debug is for Python; for a Node tool there is --inspect");
  }
  if (inspect !== undefined && runtime === "python") {
    throw new UsageError("--inspect is for Node; for a Python tool there is --debug");
  }
  err.line(
    "No sandbox: the tool runs as you do, with the backend host, without limits and a gateway.",
  );
  return { inspectPort: inspect, toolsDir, environment };
}
