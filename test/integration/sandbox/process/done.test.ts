/**
 * How a command ends that has given its result: it is killed in place of its exit, and the report
 * does not wait until its processes are gone.
 */
import { once } from "node:events";
import { describe, expect, test } from "vitest";
import { readProc } from "../../../../worker/sandbox/proc/files.ts";
import {
  allChildrenOf,
  childrenOf,
  isGone,
  runNothing,
} from "../../../../worker/sandbox/proc/processes.ts";
import { readStat } from "../../../../worker/sandbox/proc/stat.ts";
import type { BwrapExecution } from "../../../../worker/sandbox/bubblewrap/execution.ts";
import { patience } from "../../../support/patience.ts";
import { templateHosts } from "../../../support/sandboxes/template-host.ts";
import { never } from "../sandbox-host.ts";

const openTemplateHost = templateHosts();

/** Stops itself as soon as it waits for its call. */
const stopping = `
import os, signal, threading, time

def stop():
    while "S" not in open(f"/proc/self/task/{os.getpid()}/stat").read().split(")")[1]:
        time.sleep(0.01)
    os.kill(os.getpid(), signal.SIGSTOP)

def run(text):
    return {}

threading.Thread(target=stop, daemon=True).start()
`;

/** Whether a process that this one has started, or one of its descendants, is stopped. */
function hasStopped(pid: number): boolean {
  return allChildrenOf(pid).some(
    (child) => / T /.test(readProc(`/proc/${child}/stat`)) || hasStopped(child),
  );
}

async function aborted(signal: AbortSignal): Promise<unknown> {
  if (!signal.aborted) await once(signal, "abort");
  return signal.reason;
}

/** SIGKILL in the masks of proc_pid_status(5). */
const killBit = 1n << 8n;

/** Whether a process runs no code of its own any more: killed, exiting or gone. */
function runsNoCode(pid: number): boolean {
  if (isGone(pid) || readStat(`/proc/${pid}`)?.isExiting !== false) return true;
  const status = readProc(`/proc/${pid}/status`);
  // It is gone by now.
  if (status === "") return true;
  const masks = [...status.matchAll(/^S(?:ig|hd)Pnd:\s+([0-9a-f]+)$/gm)];
  return masks.some(([, mask]) => (BigInt(`0x${mask}`) & killBit) !== 0n);
}

const source = `
import atexit, ctypes, os, signal, subprocess, sys, threading, time

def run(what=""):
    if what == "output":
        open("output/left", "w").close()
    if what == "process":
        subprocess.Popen(["/bin/sleep", "99"])
    if what == "process of a thread":
        started = threading.Event()
        def start():
            subprocess.Popen(["/bin/sleep", "99"])
            started.set()
            time.sleep(99)
        for target in (*[lambda: time.sleep(99)] * 3, start):
            threading.Thread(target=target, daemon=True).start()
        started.wait()
    if what == "orphan":
        ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER
        subprocess.run(["/bin/sh", "-c", "sleep 99 &"], stdout=subprocess.DEVNULL)
    if what == "thread":
        threading.Thread(target=time.sleep, args=(99,), daemon=True).start()
    if what == "closed":
        os.closerange(3, 100)
    if what == "replaced":
        os.closerange(3, 100)
        run.files = [open(f"/tmp/{number}", "w+") for number in range(9)]
        atexit.register(check)
    if what == "forged line":
        os.write(channel(), b'{"done":true}\\n')
    if what == "forged result":
        os.write(channel(), b'{"result":14}\\n{"result":"7"}{"done":true}\\n')
        time.sleep(99)
    if what == "killed late":
        atexit.register(os.kill, os.getpid(), signal.SIGKILL)
    if what == "exits late":
        atexit.register(os._exit, 3)
    if what == "exits late with 0":
        atexit.register(os._exit, 0)
    return {"what": what}

def channel():
    [number] = [int(each) for each in os.listdir("/proc/self/fd") if int(each) > 2 and is_socket(each)]
    return number

def is_socket(number):
    try:
        return os.readlink(f"/proc/self/fd/{number}").startswith("socket:")
    except OSError:
        return False

def check():
    if any(file.seek(0, 2) for file in run.files):
        os._exit(4)
`;

const callOf = (way: "pool" | "template"): void => {
  const open = async (context: Parameters<typeof openTemplateHost>[0]) => {
    const host = await openTemplateHost(context, { files: { "tool.py": source } });
    const template = way === "template" ? await host.openTemplate() : undefined;
    context.onTestFinished(() => template?.[Symbol.asyncDispose]());
    return { host, park: () => template?.park(never) ?? host.park() };
  };
  const textOf = (result: Uint8Array | undefined) => result && Buffer.from(result).toString();

  test(
    "is over when it is done: whatever there is of it has been killed, and goes with the sandbox",
    { tags: "promise-E5" },
    async (context) => {
      const { host, park } = await open(context);
      let wasEnding = false;
      // Where the machine is busy, all may be gone before the report.
      for (let round = 0; round < 20 && !(round > 3 && wasEnding); round++) {
        const what = round === 1 ? "thread" : "";
        await using parked = await park();
        const execution = (await host.wake(parked, "run", { what })) as BwrapExecution;
        const first = execution.firstPid!;
        const processes = [first, ...childrenOf(first)];
        const report = await execution.exited;
        expect(processes.filter((pid) => !runsNoCode(pid))).toEqual([]);
        if (report.ending !== undefined) wasEnding = true;
        else expect(runNothing(first)).toBe(true);
        expect(report).toMatchObject({ started: true, exitCode: 0, signal: undefined });
        expect(textOf(report.result)).toBe(`{"result":{"what":"${what}"},"outputs":{}}`);
        expect(report.usage.cpuMs).toBeGreaterThan(0);
        await execution.stop(0);
        expect(runNothing(first)).toBe(true);
      }
      expect(wasEnding).toBe(true);
    },
  );

  test(
    "is over when all of it is gone where it left an output, or a process",
    { tags: "promise-E5" },
    async (context) => {
      const { host, park } = await open(context);
      for (const what of ["output", "process", "process of a thread", "orphan"]) {
        await using parked = await park();
        const execution = (await host.wake(parked, "run", { what })) as BwrapExecution;
        const report = await execution.exited;
        // On a busy machine it may be gone before the worker looks.
        expect(runNothing(execution.firstPid!)).toBe(true);
        expect(report).toMatchObject({ exitCode: 0, signal: undefined });
        expect(textOf(report.result)).toBe(`{"result":{"what":"${what}"},"outputs":{}}`);
      }
    },
  );

  test.for([
    ["closed the wake channel", "closed"],
    ["has files in its place", "replaced"],
  ] as const)("is answered by result.json when the tool %s", async ([, what], context) => {
    const { host, park } = await open(context);
    await using parked = await park();
    const report = await (await host.wake(parked, "run", { what })).exited;
    expect(report).toMatchObject({ exitCode: 0, result: undefined });
    const left = await parked.workDir.openLeft("result.json");
    await using handle = left!.handle;
    expect(await handle.readFile("utf8")).toBe(`{"result":{"what":"${what}"},"outputs":{}}`);
  });

  test("has the result that its tool forged, and ends", async (context) => {
    const { host, park } = await open(context);
    await using parked = await park();
    const report = await (await host.wake(parked, "run", { what: "forged result" })).exited;
    expect(report).toMatchObject({ exitCode: 0 });
    expect(textOf(report.result)).toBe('{"result":"7"}');
  });

  test(
    "is given up with its signal where the command reads nothing",
    { tags: "promise-E4" },
    async (context) => {
      context.skip(way === "template", "a template is not made of a module that runs a thread");
      const host = await openTemplateHost(context, { files: { "tool.py": stopping } });
      await using parked = await host.park();
      await expect.poll(() => hasStopped(process.pid), patience).toBe(true);
      const signal = AbortSignal.timeout(300);
      const waking = host.wake(parked, "run", { text: "x".repeat(2_000_000) }, signal);
      await expect(waking).rejects.toBe(await aborted(signal));
    },
  );

  test("ends by its own exit where its tool has spoiled the channel", async (context) => {
    const { host, park } = await open(context);
    await using parked = await park();
    const report = await (await host.wake(parked, "run", { what: "forged line" })).exited;
    expect(report).toMatchObject({ exitCode: 0, signal: undefined, result: undefined });
    expect(report).not.toHaveProperty("ending");
  });

  test.for([
    ["a signal", "killed late", { exitCode: undefined, signal: "SIGKILL" }],
    ["another status", "exits late", { exitCode: 3, signal: undefined }],
    ["its own exit", "exits late with 0", { exitCode: 0, signal: undefined }],
  ] as const)("ends by %s of its exit handlers", async ([, what, end], context) => {
    const { host, park } = await open(context);
    await using parked = await park();
    const report = await (await host.wake(parked, "run", { what })).exited;
    expect(report).toMatchObject(end);
    expect(report).not.toHaveProperty("ending");
  });
};
describe("a call of a sandbox from a template", () => callOf("template"));
describe("a call of a sandbox from a pool", { tags: "full" }, () => callOf("pool"));
