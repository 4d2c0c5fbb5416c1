/**
 * What is told of a process, and so of its sandbox, that is on its way out: whether it, or what
 * descends from it, can still run anything.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { isGone, runNothing } from "../../../worker/sandbox/proc/processes.ts";
import { readStat } from "../../../worker/sandbox/proc/stat.ts";
import { patience } from "../../support/patience.ts";

/**
 * The number of the child of a Python program that does not wait for it. What the child does is
 * `source`.
 */
async function childThat(source: string): Promise<number> {
  const lines = source.split("\n").map((line) => `    ${line}`);
  const program = [
    "import os, time",
    "pid = os.fork()",
    "if pid == 0:",
    ...lines,
    "    os._exit(0)",
  ];
  const script = [...program, "print(pid, flush=True)", "time.sleep(100)"].join("\n");
  const parent = spawn("/usr/bin/python3", ["-I", "-c", script], { detached: true });
  onTestFinished(() => void process.kill(-parent.pid!, "SIGKILL"));
  const [chunk] = (await once(parent.stdout, "data")) as [Buffer];
  return Number(chunk.toString());
}

/** The state of a process, as proc_pid_stat(5) has it. */
function stateOf(pid: number): string | undefined {
  return / ([A-Z]) /.exec(readFileSync(`/proc/${pid}/stat`, "latin1"))?.[1];
}

describe("a process, with all that descend from it,", () => {
  test("runs nothing when it has ended and nobody has waited for it", async () => {
    const pid = await childThat("pass");
    await vi.waitFor(() => expect(isGone(pid)).toBe(true), patience);
    expect(runNothing(pid)).toBe(true);
  });

  test("may run something as long as it lives", async () => {
    const pid = await childThat("time.sleep(100)");
    expect(runNothing(pid)).toBe(false);
    expect(runNothing(process.pid)).toBe(false);
  });

  test("may run something when only its first thread has ended", async () => {
    const pid = await childThat(`
import ctypes, platform, threading
threading.Thread(target=time.sleep, args=(100,)).start()
ctypes.CDLL(None).syscall({"x86_64": 60, "aarch64": 93}[platform.machine()], 0)`);
    await vi.waitFor(() => expect(readStat(`/proc/${pid}`)?.hasEnded).toBe(true), patience);
    expect(runNothing(pid)).toBe(false);
    expect(isGone(pid)).toBe(false);
  });

  test("may run something while it is stopped", async () => {
    const pid = await childThat("time.sleep(100)");
    process.kill(pid, "SIGSTOP");
    await vi.waitFor(() => expect(stateOf(pid)).toBe("T"), patience);
    expect(runNothing(pid)).toBe(false);
  });

  test("runs nothing when there is no such process", () => {
    expect(runNothing(2 ** 30)).toBe(true);
  });
});
