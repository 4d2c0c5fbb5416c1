/**
 * A worker that is killed leaves no parked sandbox, at whatever step of its waiting, and neither
 * does one that is killed together with the process that ends its sandboxes.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, readFile, readdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { sandboxUid } from "../integration/sandbox/sandbox-host.ts";
import {
  type HoldPoint,
  HeldSandboxes,
  SandboxWatch,
} from "../support/sandboxes/held-sandboxes.ts";
import { patience } from "../support/patience.ts";
import { reachableDirectory } from "../support/workers/rig.ts";

/** Its module leaves a process that wants to go on, and says where it is by files. */
const source = (loading: string): string => `
import os, signal, time
for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
    signal.signal(number, signal.SIG_IGN)
if os.fork() == 0:
    os.setsid()
    os.closerange(0, 64)
    while True:
        time.sleep(1)
open("output/loads", "w").close()
${loading}

def run():
    open("output/runs", "w").close()
    time.sleep(600)
`;

/**
 * A worker that can be told to park a sandbox, and all that a test needs to see what is left of it.
 *
 * @param loading what the tool's module does besides
 */
async function startWorker(loading = "") {
  const base = await reachableDirectory();
  onTestFinished(() => rm(base, { recursive: true, force: true }));
  const [workBase, toolsDir] = [join(base, "work"), join(base, "tools")];
  await mkdir(toolsDir);
  await writeFile(join(toolsDir, "tool.py"), source(loading));
  const sandboxes = await HeldSandboxes.in(base);
  const entry = join(import.meta.dirname, "../support/sandboxes/parking-worker.ts");
  const argv = [entry, workBase, sandboxes.bwrapBin, String(sandboxUid ?? ""), toolsDir];
  const child = spawn(process.execPath, argv, { stdio: ["pipe", "pipe", "inherit"] });
  const watch = new SandboxWatch(workBase);
  onTestFinished(async () => {
    child.kill("SIGKILL");
    for (const { pid } of await watch.processes()) process.kill(pid, "SIGKILL");
  });
  let said = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => (said += text));
  const says = (text: string) => vi.waitFor(() => expect(said).toContain(text), patience);
  await says("opened");
  await watch.meet();
  const leaves = (name: string) =>
    vi.waitFor(async () => {
      const paths = await readdir(workBase, { recursive: true });
      expect(paths.some((path) => path.endsWith(`output/${name}`))).toBe(true);
    }, patience);
  return { child, watch, sandboxes, says, leaves, goOn: () => child.stdin.write("\n") };
}

type Worker = Awaited<ReturnType<typeof startWorker>>;

async function heldAt(point: HoldPoint): Promise<Worker> {
  const worker = await startWorker();
  await worker.sandboxes.holdAt(point);
  worker.goOn();
  await worker.watch.reaches(point);
  return worker;
}

async function loads(): Promise<Worker> {
  const worker = await startWorker("time.sleep(600)");
  worker.goOn();
  await worker.leaves("loads");
  return worker;
}

async function waits(): Promise<Worker> {
  const worker = await startWorker();
  worker.goOn();
  await worker.says("parked");
  return worker;
}

async function runs(): Promise<Worker> {
  const worker = await waits();
  worker.goOn();
  await worker.leaves("runs");
  return worker;
}

const steps: Readonly<Record<string, () => Promise<Worker>>> = {
  "before bubblewrap runs": () => heldAt("unmade"),
  "when its first process is born": () => heldAt("born"),
  "when its mounts are made": () => heldAt("mounted"),
  "while it loads its tool": loads,
  "while it waits": waits,
  "when it has got its call": runs,
};

async function kill(child: ChildProcess): Promise<void> {
  child.kill("SIGKILL");
  if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
}

/** The process beside a worker that ends its sandboxes after it. */
async function guardOf({ pid }: ChildProcess): Promise<number> {
  const children = await readFile(`/proc/${pid}/task/${pid}/children`, "utf8");
  for (const child of children.split(" ").filter(Boolean)) {
    const commandLine = await readFile(`/proc/${child}/cmdline`, "utf8");
    if (commandLine.split("\0").includes("str-orphans")) return Number(child);
  }
  throw new Error("the worker has no guard");
}

const isLeft = async ({ watch }: Worker, count: "some" | "none"): Promise<void> => {
  const processes = await watch.processes();
  if (count === "none") expect(processes).toEqual([]);
  else expect(processes).not.toEqual([]);
};

describe(
  "of a worker that is killed, no parked sandbox is left a moment later,",
  { tags: "promise-E6" },
  () => {
    const leavesNone = async (step: string): Promise<void> => {
      const worker = await steps[step]!();
      await isLeft(worker, "some");
      await kill(worker.child);
      await vi.waitFor(() => isLeft(worker, "none"), patience);
    };
    const usual = "while it waits";
    const others = Object.keys(steps).filter((step) => step !== usual);
    test.for([usual])("%s", leavesNone);
    test.for(others)("%s", { tags: "full" }, leavesNone);
  },
);

test(
  "a parked sandbox ends with its worker, also when nobody is left to end it",
  { tags: "promise-E6" },
  async () => {
    const worker = await waits();
    await isLeft(worker, "some");
    const guard = await guardOf(worker.child);
    // A worker that is not stopped may start another guard before it is killed.
    worker.child.kill("SIGSTOP");
    process.kill(guard, "SIGKILL");
    await kill(worker.child);
    await vi.waitFor(() => isLeft(worker, "none"), patience);
  },
);
