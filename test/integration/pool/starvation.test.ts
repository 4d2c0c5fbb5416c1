/**
 * Sandboxes that are made ahead never take from calls what these need: on real sandboxes, by the
 * order of events. Time stands still where a test does not move it, so no refill has waited long
 * enough to have its turn beside a call.
 */
import { writeFile } from "node:fs/promises";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { Writable } from "node:stream";
import { type TestContext, describe, expect, onTestFinished, test } from "vitest";
import type { ToolEntry } from "../../../worker/manifest/manifest.ts";
import { openPythonRunner } from "../../../worker/runners/python.ts";
import { builtInProfiles } from "../../../worker/sandbox/profile.ts";
import { workDirInside } from "../../../worker/sandbox/sandbox.ts";
import { insidePaths } from "../../../worker/runners/inside-paths.ts";
import { workDirNames } from "../../../worker/sandbox/work/work-dir.ts";
import { holdMs } from "../../../worker/pool/tool-pool.ts";
import type { ToolSandbox } from "../../../worker/pool/starts.ts";
import { CallSeries } from "../../../worker/pool/call-series.ts";
import { PooledStarts } from "../../../worker/pool/pooled-starts.ts";
import { createLogger } from "../../../worker/telemetry/logger.ts";
import { patience } from "../../support/patience.ts";
import { type Rig, startRig } from "../../support/workers/rig.ts";
import { HandClock } from "../../unit/broker/hand-clock.ts";
import { tool } from "../../unit/manifest/fixtures.ts";
import { never, openBackend, temporaryDirectory } from "../sandbox/sandbox-host.ts";

const profile = builtInProfiles.get("standard")!;

/** Starts of one tool on one processor. They end with the test. */
async function openStarts(context: TestContext, entry: ToolEntry) {
  const owned = new AsyncDisposableStack();
  onTestFinished(() => owned.disposeAsync());
  const backend = owned.use(await openBackend(context));
  const toolsDir = await temporaryDirectory();
  await writeFile(join(toolsDir, "tools.py"), "import time\n\ndef run():\n    time.sleep(600)\n");
  const runner = owned.use(
    await openPythonRunner({
      pythonBin: "/usr/bin/python3",
      toolsDir,
      runnerDir: join(import.meta.dirname, "../../../tool-runner/python"),
      scratchDir: backend.scratchDir,
      backend,
      workerEnvironment: {},
    }),
  );
  const clock = new HandClock();
  const starts = owned.use(
    new PooledStarts({
      runners: new Map([["python", runner]]),
      backend,
      hostAccess: { grant: () => Promise.resolve({ mounts: [], devices: [] }) },
      networkOf: () => undefined,
      versions: {
        versionOf: () => 0,
        onChange: () => ({ [Symbol.dispose]: () => undefined }),
      },
      clock,
      log: createLogger("debug", new Writable({ write: (_chunk, _encoding, done) => done() })),
      maxBytes: 512 * 1024 * 1024,
      cpus: 1,
      suspendedCalls: () => 0,
      series: new CallSeries(clock),
      profileOf: () => profile,
    }),
  );
  starts.follow([entry]);
  const pool = () => starts.stats[0];
  return {
    clock,
    acquire: () => starts.acquire(entry, profile, never),
    pool,
    untilWaiting: (count: number) =>
      expect.poll(pool, patience).toMatchObject({ idle: count, making: 0 }),
  };
}

/** Has the tool run in its sandbox until that is disposed. */
async function run({ start }: ToolSandbox): Promise<void> {
  const inWork = (name: string): string => join(workDirInside, name);
  await start(
    JSON.stringify({
      module: "tools",
      function: "run",
      status_pipe: inWork(workDirNames.status),
      result_file: inWork(workDirNames.result),
      output_dir: inWork(workDirNames.output),
      tools_dir: insidePaths.pythonTools,
    }),
  );
}

describe("while calls follow each other without a gap", () => {
  const count = 2;
  const warm = { min: count, max: count };

  test.for([
    ["pool", ["pool", "pool", "cold", "cold", "cold"]],
    ["template", ["template", "template", "template", "template", "template"]],
  ] as const)(
    "no sandbox is made ahead by %s, and as soon as none runs all are",
    { tags: "full" },
    async ([start, kinds], context) => {
      const scene = await openStarts(context, tool("tool", { start, warm }));
      await scene.untilWaiting(count);
      const came: string[] = [];
      let former: ToolSandbox | undefined;
      for (const _ of kinds) {
        const sandbox = await scene.acquire();
        // The next call is there before the last one has ended.
        await former?.[Symbol.asyncDispose]();
        came.push(sandbox.startMode);
        await run(sandbox);
        const waiting = Math.max(0, count - came.length);
        expect(scene.pool()).toMatchObject({ idle: waiting, making: 0 });
        former = sandbox;
      }
      expect(came).toEqual(kinds);
      expect(scene.pool()).toMatchObject({ hits: count, misses: kinds.length - count });
      await former?.[Symbol.asyncDispose]();
      await scene.untilWaiting(count);
    },
  );

  test.for(["pool", "template"] as const)(
    "one at a time is made by %s, once it has stood back for long enough",
    { tags: "full" },
    async (start, context) => {
      const scene = await openStarts(context, tool("tool", { start, warm }));
      await scene.untilWaiting(count);
      await using first = await scene.acquire();
      await using second = await scene.acquire();
      await run(first);
      await run(second);
      expect(scene.pool()).toMatchObject({ idle: 0, making: 0 });
      for (const waiting of [1, 2]) {
        scene.clock.advance(holdMs.all[start]);
        await scene.untilWaiting(waiting);
      }
    },
  );
});

describe("while sandboxes are made ahead that never get ready", () => {
  const making = (rig: Rig, name: string) =>
    rig.worker.starts?.stats.find((pool) => pool.tool === name)?.making;

  test("a worker with one slot answers its calls", { tags: "full" }, async () => {
    const pool = { start: "pool", warm: { min: 1 } } as const;
    const stuck = Array.from({ length: availableParallelism() }, (_, n) => `stuck_${n}`);
    await using rig = await startRig({
      tools: {
        ...Object.fromEntries(
          stuck.map((name) => [name, { module: "stuck", function: "run", ...pool }]),
        ),
        quick: { module: "quick", function: "run", start: "cold" },
      },
      files: {
        "stuck.py": "import time\n\ntime.sleep(600)\n",
        "quick.py": "def run():\n    return {}\n",
      },
      environment: { SANDBOX_MAX_CONCURRENT: "1" },
      isWarm: true,
    });
    const allStuck = () => stuck.map((name) => making(rig, name));
    await expect.poll(allStuck, patience).toEqual(stuck.map(() => 1));
    for (let call = 0; call < 3; call++) {
      expect(await rig.call("quick")).toMatchObject({ kind: "success" });
    }
    await expect.poll(allStuck, patience).toEqual(stuck.map(() => 1));
  });
});
