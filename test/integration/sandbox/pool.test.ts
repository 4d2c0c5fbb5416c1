/**
 * Sandboxes that are parked before there is a call, with the real Python runner in them.
 */
import { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type TestContext, describe, expect, onTestFinished, test, vi } from "vitest";
import type { Limits } from "../../../worker/protocol/resource-limits.ts";
import { openPythonRunner } from "../../../worker/runners/python.ts";
import { idleSampleMs } from "../../../worker/sandbox/accounting/resource-monitor.ts";
import type { BubblewrapOptions } from "../../../worker/sandbox/bubblewrap/backend.ts";
import { signalQuietly } from "../../../worker/sandbox/proc/processes.ts";
import { builtInProfiles } from "../../../worker/sandbox/profile.ts";
import {
  type ExitReport,
  type ParkedSandbox,
  SandboxError,
  workDirInside,
} from "../../../worker/sandbox/sandbox.ts";
import { insidePaths } from "../../../worker/runners/inside-paths.ts";
import { inheritableDescriptors } from "../../../worker/support/inherited-descriptors.ts";
import { patience } from "../../support/patience.ts";
import { tool } from "../../unit/manifest/fixtures.ts";
import {
  never,
  openBackend,
  openDescriptors,
  processesIn,
  scratchDirectory,
  sharedBackends,
  temporaryDirectory,
} from "./sandbox-host.ts";

const restrictive = builtInProfiles.get("restrictive")!;
const MiB = 1024 * 1024;

interface PoolOptions {
  readonly limits?: Partial<Limits>;
  readonly changes?: Partial<BubblewrapOptions>;
}

const open = sharedBackends();

/** The backend that tests share, or one that is opened with what differs. */
async function backendFor(context: TestContext, changes?: Partial<BubblewrapOptions>) {
  if (changes === undefined) return open(context);
  const backend = await openBackend(context, changes);
  onTestFinished(() => backend[Symbol.asyncDispose]());
  return backend;
}

/** What parks sandboxes of a tool whose module, `tool`, has this text. */
async function openPool(context: TestContext, source: string, options: PoolOptions = {}) {
  const backend = await backendFor(context, options.changes);
  const toolsDir = await temporaryDirectory();
  await writeFile(join(toolsDir, "tool.py"), source);
  const runner = await openPythonRunner({
    pythonBin: "/usr/bin/python3",
    toolsDir,
    runnerDir: join(import.meta.dirname, "../../../tool-runner/python"),
    scratchDir: await scratchDirectory(backend),
    backend,
    workerEnvironment: {},
  });
  const profile = { ...restrictive, limits: { ...restrictive.limits, ...options.limits } };
  const prepared = await runner.prepare(tool("tool", { module: "tool" }), profile);
  onTestFinished(async () => {
    await prepared[Symbol.asyncDispose]();
    await runner[Symbol.asyncDispose]();
  });
  const request = { ...prepared, profile, devices: [] };
  return (signal = never) => backend.aheadOf!(profile)!.park(request, prepared.park!, signal);
}

/** More than the disk of these sandboxes may hold. */
function giveLargeInput({ workDir }: ParkedSandbox): Promise<unknown> {
  return workDir.writeInput("data", { body: Readable.from(Buffer.alloc(16 * MiB, 1)) }, never);
}

/** Gives a parked sandbox a call of its tool's `run`. */
async function wake(parked: ParkedSandbox) {
  const inWork = (name: string): string => join(workDirInside, name);
  const call = {
    module: "tool",
    function: "run",
    result_file: inWork("result.json"),
    output_dir: inWork("output"),
    tools_dir: insidePaths.pythonTools,
  };
  return parked.wake(JSON.stringify(call));
}

function resultOf({ result }: ExitReport): unknown {
  return (JSON.parse(Buffer.from(result!).toString()) as { result: unknown }).result;
}

const working = "def run():\n    return {'ok': True}\n";

describe("a parked sandbox", () => {
  test("has loaded its tool when it is there, and answers its call", async (context) => {
    const park = await openPool(context, `print("loaded", flush=True)\n${working}`);
    await using parked = await park();
    expect(parked.privateBytes).toBeGreaterThan(MiB);
    const execution = await wake(parked);
    const printed = text(execution.stdout);
    const report = await execution.exited;
    expect(report).toMatchObject({ started: true, exitCode: 0, exceeded: undefined });
    expect(resultOf(report)).toEqual({ ok: true });
    await parked.lost;
    // What was printed before it was woken belongs to the call.
    expect(await printed).toBe("loaded\n");
  });

  test("is woken once, and not when it has ended", async (context) => {
    const park = await openPool(context, working);
    await using parked = await park();
    await (
      await wake(parked)
    ).exited;
    await expect(parked.wake("{}")).rejects.toThrow(
      new SandboxError("a parked sandbox is woken once"),
    );
    await using ended = await park();
    for (const pid of await processesIn(ended.workDir.path)) signalQuietly(pid, "SIGKILL");
    await ended.lost;
    await expect(ended.wake("{}")).rejects.toThrow(new SandboxError("a parked sandbox has ended"));
  });

  test("counts the time of its call only", async (context) => {
    const park = await openPool(context, working);
    await using parked = await park();
    const parkedMs = performance.now();
    await vi.waitFor(() => expect(performance.now() - parkedMs).toBeGreaterThan(300), patience);
    const wokenMs = performance.now();
    const { usage } = await (await wake(parked)).exited;
    expect(usage.wallMs).toBeLessThanOrEqual(performance.now() - wokenMs);
  });

  test("gives its tool the wake channel and no other descriptor, and no way to that of its first process", async (context) => {
    const park = await openPool(
      context,
      `
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
def refused(number, *arguments):
    return libc.syscall(number, *arguments) == -1 and ctypes.get_errno()
def run():
    descriptors = list(map(int, os.listdir("/proc/self/fd")))
    first = libc.syscall(434, 1, 0)
    return {
        "descriptors": sorted(descriptors),
        "input": os.readlink("/proc/self/fd/0"),
        "taken": refused(438, first, 0, 0),
    }`,
    );
    await using parked = await park();
    const report = await (await wake(parked)).exited;
    const { descriptors, ...more } = resultOf(report) as { descriptors: number[] };
    // What the test runner itself has inherited is closed by worker/main.ts alone.
    const inherited = inheritableDescriptors();
    // One that lists them, and the wake channel.
    expect(descriptors.filter((each) => !inherited.includes(each))).toEqual([0, 1, 2, 3, 4]);
    expect(more).toEqual({ input: "/dev/null", taken: 1 });
  });

  test("that is given back leaves no process and no descriptor, woken or not", async (context) => {
    const park = await openPool(context, working);
    // The first one makes work directories ahead.
    await (await park())[Symbol.asyncDispose]();
    const before = await openDescriptors();
    for (let round = 0; round < 4; round++) {
      await using parked = await park();
      if (round % 2 === 0) await (await wake(parked)).exited;
    }
    // What the first one had open may have been closed meanwhile.
    const none = async () => expect(await openDescriptors()).toBeLessThanOrEqual(before);
    await vi.waitFor(none, patience);
  });
});

describe("no sandbox is parked", () => {
  test.for([
    ["that cannot be loaded is unfit, and the error says why", "import no_such", true, "no_such"],
    ["that ends while it is loaded", "import os; os._exit(4)", false, "exit code 4"],
    ["that kills itself", "import os; os.kill(os.getpid(), 9)", false, "SIGKILL"],
    ["that says something else", "import os; os.write(3, b'{}\\n')", false, "ended while"],
    ["that says too much", "import os; os.write(3, b'x' * 9000)", false, "ended while"],
    ["that closes everything", "import os; os.closerange(0, 64)", false, "ended while"],
  ] as const)("for a tool %s", async ([, source, isUnfit, reason], context) => {
    const park = await openPool(context, source);
    const error = await park().catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(SandboxError);
    expect(error).toMatchObject({ isUnfit, message: expect.stringContaining(reason) as string });
  });

  test("for somebody who gives up meanwhile", async (context) => {
    const park = await openPool(context, "import time; time.sleep(600)");
    const reason = new Error("gone");
    await expect(park(AbortSignal.abort(reason))).rejects.toBe(reason);
    const giving = new AbortController();
    const parking = park(giving.signal);
    setTimeout(() => giving.abort(reason), 200);
    await expect(parking).rejects.toBe(reason);
  });
});

describe("limits hold for a parked sandbox", () => {
  test("while its tool is loaded", async (context) => {
    const source =
      "open('output/large', 'wb').write(bytes(9_000_000))\nimport time; time.sleep(600)";
    const park = await openPool(context, source, { limits: { diskBytes: 8 * MiB } });
    await expect(park()).rejects.toThrow("ended while it was loaded: diskBytes");
  });

  test("while it waits: one that goes beyond them is lost", async (context) => {
    const source = `
import os, threading, time
def grow():
    while not os.path.exists("output/grow"):
        time.sleep(0.01)
    open("output/large", "wb").write(bytes(9_000_000))
    time.sleep(600)
threading.Thread(target=grow, daemon=True).start()`;
    const park = await openPool(context, source, { limits: { diskBytes: 8 * MiB } });
    await using parked = await park();
    await writeFile(join(parked.workDir.path, "output", "grow"), "");
    await parked.lost;
  });

  test(
    "while its call is staged: what the tool adds to an input counts",
    { tags: "full" },
    async (context) => {
      const source = `
import os, threading, time
def grow():
    # For a moment the file is there, and not yet the tool's.
    while not os.access("input/data", os.W_OK):
        time.sleep(0.01)
    # What it adds before the worker has looked at the file counts as the input's.
    with open("input/data", "ab", buffering=0) as file:
        for _ in range(100):
            file.write(bytes(1_000_000))
            time.sleep(0.05)
    time.sleep(600)
threading.Thread(target=grow, daemon=True).start()`;
      const park = await openPool(context, source, { limits: { diskBytes: 8 * MiB } });
      await using parked = await park();
      await parked.workDir.writeInput("data", { body: Readable.from("1") }, never);
      await parked.lost;
    },
  );

  test("while its call is staged, whose inputs do not count", async (context) => {
    const source = "def run():\n    return {}";
    const park = await openPool(context, source, { limits: { diskBytes: 8 * MiB } });
    await using parked = await park();
    await giveLargeInput(parked);
    await sleep(1.5 * idleSampleMs);
    const execution = await wake(parked);
    expect(await execution.exited).toMatchObject({ exitCode: 0, exceeded: undefined });
  });

  test(
    "in its call, where inputs count as little as in any other",
    { tags: "full" },
    async (context) => {
      const source = `
import time
def run():
    open("output/half", "wb").write(bytes(5_000_000))
    open("output/half", "rb").read()
    time.sleep(0.5)
    open("output/other", "wb").write(bytes(5_000_000))
    time.sleep(600)`;
      const park = await openPool(context, source, { limits: { diskBytes: 8 * MiB } });
      await using parked = await park();
      await giveLargeInput(parked);
      const execution = await wake(parked);
      const { exceeded } = await execution.exited;
      expect(exceeded).toMatchObject({ limit: "diskBytes", bound: 8 * MiB });
      expect(exceeded!.peak).toBeLessThan(16 * MiB);
    },
  );

  test.for([
    ["with a control group", false],
    ["without", true],
  ] as const)(
    "of processor time, that of loading included, %s",
    { tags: "full" },
    async ([, withoutCgroups], context) => {
      const source = `
import time
def burn(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass
burn(1.2)
def run():
    burn(600)`;
      const park = await openPool(context, source, {
        limits: { cpuSeconds: 2 },
        changes: { withoutCgroups },
      });
      await using parked = await park();
      const { exceeded } = await (await wake(parked)).exited;
      expect(exceeded).toMatchObject({ limit: "cpuSeconds", bound: 2 });
    },
  );
});
