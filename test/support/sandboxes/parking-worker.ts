/**
 * A process that parks one sandbox, as a worker does, and wakes it when it is told to: `node
 * parking-worker.ts WORK_BASE BWRAP_BIN UID TOOLS_DIR`. The tool is `run` in `tool.py`. It says
 * `opened`, then `parked`, and after a line of input `woken`.
 */
import { once } from "node:events";
import { createInterface } from "node:readline";
import { join } from "node:path";
import { openPythonRunner } from "../../../worker/runners/python.ts";
import { openBubblewrap } from "../../../worker/sandbox/bubblewrap/backend.ts";
import { builtInProfiles } from "../../../worker/sandbox/profile.ts";
import { workDirInside } from "../../../worker/sandbox/sandbox.ts";
import { insidePaths } from "../../../worker/runners/inside-paths.ts";
import { systemClock } from "../../../worker/support/clock.ts";
import { newId } from "../../../worker/support/ids.ts";
import { tool } from "../../unit/manifest/fixtures.ts";

const [workBase = "", bwrapBin = "", uid = "", toolsDir = ""] = process.argv.slice(2);
const commands = createInterface({ input: process.stdin });
const profile = builtInProfiles.get("standard")!;

const backend = await openBubblewrap({
  workBase,
  bwrapBin,
  uid: uid === "" ? undefined : Number(uid),
  clock: systemClock,
  newId,
  onRemoveFailed: console.error,
  onGuardLost: () => undefined,
});
const runner = await openPythonRunner({
  pythonBin: "/usr/bin/python3",
  toolsDir,
  runnerDir: join(import.meta.dirname, "../../../tool-runner/python"),
  scratchDir: backend.scratchDir,
  backend,
  workerEnvironment: {},
});
const prepared = await runner.prepare(
  tool("tool", { module: "tool", callable: { kind: "function", name: "run" } }),
  profile,
);
console.log("opened");
await once(commands, "line");
const parked = await backend.aheadOf!(profile)!.park(
  { ...prepared, profile, devices: [] },
  prepared.park!,
  new AbortController().signal,
);
console.log("parked");
await once(commands, "line");
const inWork = (name: string): string => join(workDirInside, name);
await parked.wake(
  JSON.stringify({
    module: "tool",
    function: "run",
    result_file: inWork("result.json"),
    output_dir: inWork("output"),
    tools_dir: insidePaths.pythonTools,
  }),
);
console.log("woken");
