/**
 * Runs the real Node tool runner on the Node of node_modules, with the files of the seam and no
 * sandbox.
 */
import { mkdir, mkdtemp, realpath, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { type TestContext, onTestFinished } from "vitest";
import { rm } from "node:fs/promises";
import { createToolContext } from "secure-tool-runtime/tool";
import { Failure, failureOf } from "../../../tool-runner/node/errors.js";
import { errorDocument, resultDocument } from "../../../tool-runner/node/protocol.js";
import { forkFlags } from "../../../worker/runners/node/surroundings.ts";
import { awayFromStdin } from "../../../worker/runners/node.ts";
import { run } from "../../fixtures/node/any.js";
import { type RunOptions, type ToolRun, runToolWith } from "../tool-runner/run-tool.ts";

export { removeWorkDirs, statuses } from "../tool-runner/run-tool.ts";

const project = join(import.meta.dirname, "../../..");

/** Node programs that the tests run. */
export const fixtures = join(project, "test/fixtures/node");
export const runnerDir = join(project, "tool-runner/node");
export const node = join(project, "node_modules/node/bin/node");

/** Of a runner, before its arguments. */
export const main = [node, "--max-old-space-size=200", join(runnerDir, "main.js")];
/** Starts a runner that waits for its call, as a worker does; its arguments follow. */
export const parkCommand = [...awayFromStdin, "-u", "PWD", ...main, "--park"];

/** Starts one that waits in a fork of itself. */
export const forkCommand = [
  ...[...awayFromStdin, "-u", "PWD", node, "--max-old-space-size=200", "--disable-sigusr1"],
  ...[...forkFlags, "--import", join(import.meta.dirname, "forks/hook.js")],
  ...[join(runnerDir, "main.js"), "--park"],
];

let waitingCommand: readonly string[] | undefined;

/** From now on, runners of the test file wait for their calls where they can. */
export function parkRunners(): void {
  waitingCommand ??= parkCommand;
}

/** From now on, runners of the test file wait for their calls in forks where they can. */
export function forkRunners(): void {
  waitingCommand ??= forkCommand;
}

/** Skips a test of `result.json` where runners of the test file wait for their calls. */
export function requiresResultFile(context: Pick<TestContext, "skip">): void {
  context.skip(
    waitingCommand !== undefined,
    "a runner that has waited answers by its wake channel",
  );
}

/** Runs one tool to its end. */
export function runTool(
  module: string,
  functionName: string,
  options: RunOptions = {},
): Promise<ToolRun> {
  const park = waitingCommand === undefined ? {} : { park: waitingCommand };
  return runToolWith({ command: main, toolsDir: fixtures, ...park }, module, functionName, options);
}

/** Runs a tool whose async function has this body, with `ctx` and `args` to use. */
export function runBody(body: string, options: RunOptions = {}): Promise<ToolRun> {
  return runTool("any.js", "run", { ...options, args: { body, ...options.args } });
}

/** What a tool with this body is answered. Expects that the runner wrote it and ended well. */
export async function answerOf(body: string, options: RunOptions = {}): Promise<unknown> {
  const run = await runBody(body, options);
  if (run.exitCode !== 0) throw new Error(`status ${run.exitCode}: ${run.stderr}`);
  return run.document;
}

/**
 * As `answerOf`, by the runner's own functions in this process: for what a tool returns or throws,
 * and starting Node would show nothing more. Where runners wait for their calls, by one of those.
 */
export async function answerHere(body: string, args: object = {}): Promise<unknown> {
  if (waitingCommand !== undefined) return answerOf(body, { args });
  const outputDir = await toolsDirectory({});
  const places = { result_file: `${outputDir}/result.json`, tools_dir: fixtures };
  const context = createToolContext({ outputDir });
  try {
    const returned: unknown = await run({ body, ...args }, context);
    return JSON.parse(resultDocument(returned, [], { max_result_bytes: 10_000_000 }));
  } catch (thrown) {
    return JSON.parse(errorDocument(Failure.is(thrown) ? thrown : failureOf(thrown), places));
  }
}

/**
 * A directory with these files, for modules that no type checker would let pass. Removed after the
 * test.
 */
export async function toolsDirectory(files: Readonly<Record<string, string>>): Promise<string> {
  const directory = await realpath(await mkdtemp(join(tmpdir(), "node-tools-")));
  onTestFinished(() => rm(directory, { recursive: true }));
  for (const [name, content] of Object.entries(files)) {
    await mkdir(dirname(join(directory, name)), { recursive: true });
    await writeFile(join(directory, name), content);
  }
  return directory;
}
