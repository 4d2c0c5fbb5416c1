/**
 * `harness tool test`: the test cases beside the tools of a manifest, in their sandboxes and
 * without a broker.
 */
import { type Context, UsageError, exit } from "../../context.ts";
import { OutputView, type StreamName } from "../../invoke/output-view.ts";
import { printable } from "../../invoke/screen.ts";
import { findPrograms } from "../../prerequisites.ts";
import { createPassableDirectory } from "../../temporary.ts";
import { hasManifest, layoutOf, usualToolsDir } from "../../tools-layout.ts";
import { toHostPaths } from "../host-paths.ts";
import { localCaller } from "../local-call.ts";
import { openManifestFoundation } from "../local-foundation.ts";
import { type LocalInvoker, openLocalInvoker } from "../local-invoker.ts";
import { type TestCase, caseFileEnding, findCaseFiles, readCaseFile } from "./case-file.ts";
import { runCase } from "./run-case.ts";

/** Bytes of a failed case's output that are shown: the last ones. */
const maxOutputBytes = 64 * 1024;

/** The command line, without the directory. */
export interface ToolTestOptions {
  /** Names of tools; all when empty. */
  readonly tool: readonly string[];
}

type Ending = "passed" | "failed" | "skipped";

/** Runs them one after the other. Returns 0 unless one failed. Throws UsageError. */
export async function testTools(
  dir: string | undefined,
  { tool: wanted }: ToolTestOptions,
  context: Context,
): Promise<number> {
  const directory = dir ?? (await usualToolsDir());
  if (!(await hasManifest(directory))) throw new UsageError(`${directory} has no manifest.yaml`);
  const layout = await layoutOf(directory);
  const { pythonDir, nodeDir, executableDir } = layout;
  const paths = await findCaseFiles([pythonDir, nodeDir, executableDir]);
  const files = await Promise.all(paths.map(readCaseFile));
  const all = files.flatMap(({ path, cases }) => cases.map((each) => [path, each] as const));
  const chosen = all.filter(([, { tool }]) => wanted.length === 0 || wanted.includes(tool));
  const missing = wanted.find((name) => !chosen.some(([, { tool }]) => tool === name));
  if (missing !== undefined || chosen.length === 0) {
    const what = missing === undefined ? "test" : `test of the tool "${missing}"`;
    throw new UsageError(`${directory} has no ${what}; tests are in files NAME${caseFileEnding}`);
  }

  const programs = await findPrograms(context.environment);
  await using home = await createPassableDirectory("str-tool-test-");
  const output = new KeptOutput();
  const observer = { onOutput: output.take.bind(output), onEnd: async () => {} };
  const options = { layout, programs, home: home.path };
  await using foundation = await openManifestFoundation(options, context);
  await using localInvoker = openLocalInvoker(foundation, { caller: localCaller, observer });

  const counts: Record<Ending, number> = { passed: 0, failed: 0, skipped: 0 };
  for (const [path, testCase] of chosen) {
    output.clear();
    const ending = await testOne(localInvoker, path, testCase, context);
    if (ending === "failed") output.show(context, (text) => toHostPaths(text, layout));
    counts[ending]++;
  }
  const { passed, failed, skipped } = counts;
  context.out.line(`${passed} passed, ${failed} failed, ${skipped} skipped`);
  return failed === 0 ? exit.success : exit.failure;
}

async function testOne(
  localInvoker: LocalInvoker,
  path: string,
  testCase: TestCase,
  context: Context,
): Promise<Ending> {
  const { tool, name } = testCase;
  const title = `${tool}: ${name}`;
  const { tools, unavailable } = localInvoker.manifest;
  if (testCase.skip !== undefined)
    return tell("skipped", `${title} (${testCase.skip})`, [], context);
  const refused = unavailable.get(tool);
  if (refused !== undefined) {
    return tell("failed", title, [`the tool is not served here: ${refused.reason}`], context);
  }
  if (!tools.has(tool)) {
    return tell("failed", title, [`${path}: the manifest has no such tool`], context);
  }
  const { problems, executionTimeMs } = await runCase(localInvoker, path, testCase, context);
  const ending = problems.length === 0 ? "passed" : "failed";
  return tell(ending, `${title} (${executionTimeMs} ms)`, problems, context);
}

const colours = { passed: "green", failed: "red", skipped: "yellow" } as const;

function tell(
  ending: Ending,
  title: string,
  problems: readonly string[],
  { out }: Context,
): Ending {
  out.line(`${out.paint(colours[ending], ending.padEnd("skipped".length))} ${printable(title)}`);
  for (const problem of problems) out.line(`    ${printable(problem)}`);
  return ending;
}

/** The end of what a tool prints, until it is known whether anybody wants it. */
class KeptOutput {
  readonly #pieces: (readonly [name: StreamName, chunk: Uint8Array])[] = [];
  #bytes = 0;

  take(name: StreamName, chunk: Uint8Array): void {
    this.#pieces.push([name, chunk]);
    this.#bytes += chunk.byteLength;
    for (let [first] = this.#pieces; first !== undefined; [first] = this.#pieces) {
      const [, { byteLength }] = first;
      if (this.#bytes - byteLength < maxOutputBytes) return;
      this.#pieces.shift();
      this.#bytes -= byteLength;
    }
  }

  clear(): void {
    this.#pieces.length = 0;
    this.#bytes = 0;
  }

  show({ out }: Context, readable: (text: string) => string): void {
    const view = new OutputView(out, readable, "    ");
    for (const [name, chunk] of this.#pieces) view.take(name, chunk);
    view.finish();
  }
}
