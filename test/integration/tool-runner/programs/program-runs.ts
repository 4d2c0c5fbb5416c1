/**
 * Runs programs in Python by the real runner, without a sandbox and without a gateway. With one:
 * node-runner/gateway/gateway-run.ts.
 */
import { type RunOptions, type ToolRun, runTool } from "../run-tool.ts";

export interface ProgramOptions extends RunOptions {
  readonly inputs?: object;
}

/** What a program answers with, as long as it does nothing but this. */
export const nothingElse = { stdout: "", stderr: "", displays: [] };

/** Runs a program to its end. */
export function runPython(code: string, options: ProgramOptions = {}): Promise<ToolRun> {
  const { inputs = {}, members, ...others } = options;
  const program = { program: { language: "python" }, args: { code, inputs } };
  const noTool = { module: undefined, function: undefined };
  return runTool("", "", { ...others, members: { ...noTool, ...program, ...members } });
}

/** What a program comes to. Expects that it is answered, and that it prints nothing. */
export async function valueOf(code: string, options: ProgramOptions = {}): Promise<unknown> {
  const { document, exitCode, stdout, stderr } = await runPython(code, options);
  if (exitCode !== 0 || stdout !== "" || stderr !== "") throw new Error(`${exitCode} ${stderr}`);
  return (document?.["result"] as { value: unknown } | undefined)?.value;
}
