/**
 * Node tools in sandboxes that waited for their calls answer as in those that are made for them.
 */
import { cp, readFile, readdir } from "node:fs/promises";
import { join } from "node:path";
import { Readable } from "node:stream";
import { type TestContext, expect, test } from "vitest";
import { openNodeRunner } from "../../../../worker/runners/node.ts";
import type { PreparedTool, ToolRunner } from "../../../../worker/runners/runner.ts";
import { builtInProfiles } from "../../../../worker/sandbox/profile.ts";
import {
  type Execution,
  type Sandbox,
  type SandboxRequest,
  workDirInside,
} from "../../../../worker/sandbox/sandbox.ts";
import { insidePaths } from "../../../../worker/runners/inside-paths.ts";
import { systemClock } from "../../../../worker/support/clock.ts";
import { newId } from "../../../../worker/support/ids.ts";
import { createLogger } from "../../../../worker/telemetry/logger.ts";
import { never, openBackend, temporaryDirectory } from "../../sandbox/sandbox-host.ts";
import { tool } from "../../../unit/manifest/fixtures.ts";
import { node, runnerDir } from "../run-node-tool.ts";

const root = join(import.meta.dirname, "../../../..");
const sources = ["examples/tools/node", "test/fixtures/tools-node", "test/fixtures/node"];
const profile = builtInProfiles.get("restrictive")!;

/** Module, function, arguments, and content of the artifact `input_file`. */
type Call = readonly [module: string, name: string, args: object, artifact?: string];

const calls: readonly Call[] = [
  ["business-days.ts", "addBusinessDays", { date: "2027-02-26", days: 3 }],
  ["business-days.ts", "addBusinessDays", { date: "tomorrow", days: 1 }],
  ["summarize-csv.ts", "summarizeCsv", { input_file: "input.txt" }, "city,degrees\nOslo,-2\n"],
  ["count-down.js", "countDown", { from: 3, pause_seconds: 0.01 }],
  ["good.js", "echo", { message: "hello" }],
  ["good.js", "tells", { list: [1, null] }],
  ["good.js", "nowhere", {}],
  ["typed.ts", "greet", { name: "Ada" }],
  ["artifacts.ts", "shout", { input_file: "input.txt" }, "quietly"],
  ["artifacts.ts", "shout", { input_file: "input.txt" }],
  ["failing.ts", "throws", {}],
  ["failing.ts", "reports", {}],
  ["failing.ts", "exits", { status: 0 }],
  ["failing.ts", "exits", { status: 3 }],
  ["weather/forecast.ts", "forecast", {}],
  ["any.js", "run", { body: "return new Promise(() => {})" }],
  ["any.js", "run", { body: "return Object.entries(process.env).sort()" }],
  ["any.js", "run", { body: "return Buffer.from('x')" }],
  ["any.js", "run", { body: "return process.stdin.toArray()" }],
];

/** A runner of those tools, and its backend. Skips the test where there are no sandboxes. */
async function openRunner(context: TestContext) {
  await using opened = new AsyncDisposableStack();
  const backend = opened.use(await openBackend(context));
  const toolsDir = await temporaryDirectory();
  for (const source of sources) await cp(join(root, source), toolsDir, { recursive: true });
  const runner = opened.use(
    await openNodeRunner({
      nodeBin: node,
      toolsDir,
      runnerDir,
      scratchDir: backend.scratchDir,
      backend,
      clock: systemClock,
      newId,
      log: createLogger("silent", 1),
      workerEnvironment: {},
    }),
  );
  const owned = opened.move();
  return { backend, runner, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}

/** Makes a call in a sandbox that is disposed afterwards, and says what a worker sees of it. */
async function make(
  [module, name, args, artifact]: Call,
  sandbox: Omit<Sandbox, "start">,
  start: (args: string) => Promise<Execution>,
): Promise<object> {
  await using owned = sandbox;
  const { workDir } = owned;
  const inWork = (path: string): string => `${workDirInside}/${path}`;
  if (artifact !== undefined) {
    await workDir.writeInput("input.txt", { body: Readable.from(artifact) }, never);
  }
  const described = JSON.stringify({
    module,
    function: name,
    args,
    artifact_paths: artifact === undefined ? {} : { input_file: inWork("input/input.txt") },
    tools_dir: insidePaths.nodeTools,
    result_file: inWork("result.json"),
    output_dir: inWork("output"),
    status_pipe: inWork("status.pipe"),
    user_id: "user-42",
  });
  const statuses: string[] = [];
  using channel = workDir.readStatuses((text) => void statuses.push(text));
  const { exitCode, signal, stdout, stderr, result: given } = await (await start(described)).exited;
  channel.finish();
  const file = join(workDir.path, "result.json");
  const result =
    given === undefined
      ? await readFile(file, "utf8").catch(() => undefined)
      : Buffer.from(given).toString("utf8");
  const outputs = await readdir(join(workDir.path, "output"));
  return { exitCode, signal, stdout, stderr, result, outputs: outputs.toSorted(), statuses };
}

function requestOf({ mounts, environment, memoryBound }: PreparedTool): SandboxRequest {
  return { profile, memoryBound, mounts, environment, devices: [] };
}

const prepare = (runner: ToolRunner, module: string): Promise<PreparedTool> =>
  runner.prepare(tool("tool", { runtime: "node", module }), profile);

test(
  "every call is answered as in a sandbox that is made for it",
  { tags: "full" },
  async (context) => {
    await using opened = await openRunner(context);
    const { backend, runner } = opened;
    const ahead = backend.aheadOf!(profile);
    for (const call of calls) {
      await using prepared = await prepare(runner, call[0]);
      const request = requestOf(prepared);
      const fresh = await backend.acquire(request, never);
      const cold = await make(call, fresh, async (args) => {
        await fresh.workDir.writeArguments(args);
        return fresh.start(prepared.launch);
      });
      const parked = await ahead!.park(request, prepared.park!, never);
      const warm = await make(call, parked, (args) => parked.wake(args));
      expect(warm, JSON.stringify(call)).toEqual(cold);
    }
  },
);

test("a module that cannot wait is refused, with its reason", { tags: "full" }, async (context) => {
  await using opened = await openRunner(context);
  const { backend, runner } = opened;
  await using prepared = await prepare(runner, "fails-on-import.js");
  const parking = backend.aheadOf!(profile)!.park(requestOf(prepared), prepared.park!, never);
  await expect(parking).rejects.toMatchObject({
    isUnfit: true,
    message: expect.stringContaining("its import fails: Error: no database"),
  });
});
