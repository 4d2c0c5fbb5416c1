/**
 * What bears the mark of a dead worker is ended, and nothing else.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { expect, describe, onTestFinished, test, vi } from "vitest";
import {
  endOrphans,
  guardOrphans,
  markOptions,
  sandboxMark,
} from "../../../worker/sandbox/orphans.ts";
import { newId } from "../../../worker/support/ids.ts";

const orphans = new URL("../../../worker/sandbox/orphans.ts", import.meta.url).href;
const patience = { timeout: 10_000, interval: 20 };

/** A process that goes on until it is killed, with words on its command line. */
async function goesOn(...words: readonly string[]): Promise<ChildProcess> {
  const script = "trap '' TERM; echo ready; while :; do sleep 0.05; done";
  const child = spawn("/bin/sh", ["-c", script, "sh", ...words], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  await once(child.stdout, "data");
  return child;
}

const isKilled = ({ signalCode }: ChildProcess): boolean => signalCode === "SIGKILL";

describe("the mark of a worker", () => {
  test("is its own, and does not tell the name of its directory", () => {
    const name = `worker-${newId()}`;
    expect(sandboxMark(name)).toBe(sandboxMark(name));
    expect(sandboxMark(name)).not.toBe(sandboxMark(`worker-${newId()}`));
    expect(sandboxMark(name)).toMatch(/^str-sandbox-[0-9a-f]{24}$/);
    expect(sandboxMark(name)).not.toContain(name.slice("worker-".length));
  });
});

describe("the sweep after a dead worker", () => {
  test("kills all that bear its mark, and nobody else", async () => {
    const mark = sandboxMark(newId());
    const marked = await Promise.all([1, 2, 3].map(() => goesOn(...markOptions(mark), "--args")));
    const others = await Promise.all([
      goesOn(...markOptions(sandboxMark(newId()))),
      // Such as the process that looks for it.
      goesOn(mark),
    ]);
    await endOrphans(mark);
    await vi.waitFor(() => expect(marked.map(isKilled)).toEqual([true, true, true]), patience);
    expect(others.map(isKilled)).toEqual([false, false]);
  });

  test("is over at once when nobody does", async () => {
    await endOrphans(sandboxMark(newId()));
  });
});

describe("a guard", () => {
  test("that is given back kills nobody and is gone", async () => {
    const mark = sandboxMark(newId());
    const marked = await goesOn(...markOptions(mark));
    const guard = await guardOrphans(mark);
    const pid = await guardOf(process.pid, mark);
    await guard[Symbol.asyncDispose]();
    expect(await guardOf(process.pid, mark)).toBeUndefined();
    expect(() => process.kill(pid!, 0)).toThrow("ESRCH");
    expect(isKilled(marked)).toBe(false);
  });

  test("acts when its worker is killed, also when it was asked to end before", async () => {
    const mark = sandboxMark(newId());
    const marked = await goesOn(...markOptions(mark));
    const program = `
      const { guardOrphans } = await import("${orphans}");
      await guardOrphans("${mark}");
      console.log("ready");
    `;
    const worker = spawn(process.execPath, ["--input-type=module", "-e", program], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    onTestFinished(() => void worker.kill("SIGKILL"));
    await once(worker.stdout, "data");
    const guard = await guardOf(worker.pid!, mark);
    // Service managers send it to every process of the worker.
    process.kill(guard!, "SIGTERM");
    worker.kill("SIGKILL");
    await vi.waitFor(() => expect(isKilled(marked)).toBe(true), patience);
    await vi.waitFor(() => expect(() => process.kill(guard!, 0)).toThrow("ESRCH"), patience);
  });
});

/** The guard for a mark among the children of a process. */
async function guardOf(parent: number, mark: string): Promise<number | undefined> {
  const children = await readFile(`/proc/${parent}/task/${parent}/children`, "utf8");
  for (const pid of children.split(" ").filter(Boolean)) {
    const words = (await readFile(`/proc/${pid}/cmdline`, "utf8")).split("\0");
    if (words.includes("str-orphans") && words.includes(mark)) return Number(pid);
  }
  return undefined;
}
