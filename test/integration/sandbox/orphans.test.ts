/**
 * What bears the tag of a dead worker is ended, and nothing else.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { expect, describe, onTestFinished, test, vi } from "vitest";
import {
  endOrphans,
  guardOrphans,
  ownerTagOptions,
  ownerTag,
} from "../../../worker/sandbox/orphans.ts";
import { systemClock } from "../../../worker/support/clock.ts";
import { newId } from "../../../worker/support/ids.ts";
import { patience } from "../../support/patience.ts";

const orphans = new URL("../../../worker/sandbox/orphans.ts", import.meta.url).href;
const clockModule = new URL("../../../worker/support/clock.ts", import.meta.url).href;

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

describe("the tag of a worker", () => {
  test("is its own, and does not tell the name of its directory", () => {
    const name = `worker-${newId()}`;
    expect(ownerTag(name)).toBe(ownerTag(name));
    expect(ownerTag(name)).not.toBe(ownerTag(`worker-${newId()}`));
    expect(ownerTag(name)).toMatch(/^str-sandbox-[0-9a-f]{24}$/);
    expect(ownerTag(name)).not.toContain(name.slice("worker-".length));
  });
});

describe("the sweep after a dead worker", () => {
  test("kills all that bear its tag, and nobody else", async () => {
    const tag = ownerTag(newId());
    const tagged = await Promise.all([
      ...[1, 2].map(() => goesOn(...ownerTagOptions(tag), "--args")),
      goesOn(`--root=/work/${tag}/call/state`, "boot"),
    ]);
    const others = await Promise.all([
      goesOn(...ownerTagOptions(ownerTag(newId()))),
      // Such as the process that looks for it.
      goesOn(tag),
    ]);
    await endOrphans(tag);
    await vi.waitFor(() => expect(tagged.map(isKilled)).toEqual([true, true, true]), patience);
    expect(others.map(isKilled)).toEqual([false, false]);
  });

  test("is over at once when nobody does", async () => {
    await endOrphans(ownerTag(newId()));
  });
});

describe("a guard", () => {
  test("that is given back kills nobody and is gone", async () => {
    const tag = ownerTag(newId());
    const tagged = await goesOn(...ownerTagOptions(tag));
    const lost: Error[] = [];
    const guard = await guardOrphans(tag, systemClock, (error) => void lost.push(error));
    const pid = await guardOf(process.pid, tag);
    await guard[Symbol.asyncDispose]();
    expect(await guardOf(process.pid, tag)).toBeUndefined();
    expect(() => process.kill(pid!, 0)).toThrow("ESRCH");
    expect(isKilled(tagged)).toBe(false);
    expect(lost).toEqual([]);
  });

  test("that is killed is told of, and another one takes over", async () => {
    const tag = ownerTag(newId());
    const tagged = await goesOn(...ownerTagOptions(tag));
    const worker = await guardedWorker(tag);
    const first = await guardOf(worker.pid!, tag);
    const told = once(worker.stdout!, "data");
    process.kill(first!, "SIGKILL");
    expect(String((await told)[0])).toBe("the guard ended with SIGKILL\n");
    const second = await vi.waitFor(async () => {
      const pid = await guardOf(worker.pid!, tag);
      expect(pid).toBeDefined();
      return pid;
    }, patience);
    expect(second).not.toBe(first);
    expect(isKilled(tagged)).toBe(false);
    worker.kill("SIGKILL");
    await vi.waitFor(() => expect(isKilled(tagged)).toBe(true), patience);
  });

  test("that is killed again and again comes back after a pause, which its end cuts short", async () => {
    const tag = ownerTag(newId());
    const pauses: number[] = [];
    const clock = {
      monotonicMs: () => 0,
      sleep: (ms: number, signal?: AbortSignal) => {
        pauses.push(ms);
        return systemClock.sleep(ms, signal);
      },
    };
    const guard = await guardOrphans(tag, clock, () => undefined);
    for (const looked of [1, 2]) {
      const pid = await vi.waitFor(async () => {
        const found = await guardOf(process.pid, tag);
        expect(found).toBeDefined();
        return found;
      }, patience);
      process.kill(pid!, "SIGKILL");
      await vi.waitFor(() => expect(pauses).toHaveLength(looked), patience);
    }
    expect(pauses).toEqual([0, 10_000]);
    await guard[Symbol.asyncDispose]();
    expect(await guardOf(process.pid, tag)).toBeUndefined();
  });

  test("acts when its worker is killed, also when it was asked to end before", async () => {
    const tag = ownerTag(newId());
    const tagged = await goesOn(...ownerTagOptions(tag));
    const worker = await guardedWorker(tag);
    const guard = await guardOf(worker.pid!, tag);
    // Service managers send it to every process of the worker.
    process.kill(guard!, "SIGTERM");
    worker.kill("SIGKILL");
    await vi.waitFor(() => expect(isKilled(tagged)).toBe(true), patience);
    await vi.waitFor(() => expect(() => process.kill(guard!, 0)).toThrow("ESRCH"), patience);
  });
});

/** A process with a guard, which says on its output what it is told of it. */
async function guardedWorker(tag: string): Promise<ChildProcess> {
  const program = `
    const { guardOrphans } = await import("${orphans}");
    const { systemClock } = await import("${clockModule}");
    await guardOrphans("${tag}", systemClock, ({ message }) => console.log(message));
    console.log("ready");
  `;
  const worker = spawn(process.execPath, ["--input-type=module", "-e", program], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  onTestFinished(() => void worker.kill("SIGKILL"));
  await once(worker.stdout, "data");
  return worker;
}

/** The guard for a tag among the children of a process. */
async function guardOf(parent: number, tag: string): Promise<number | undefined> {
  const children = await readFile(`/proc/${parent}/task/${parent}/children`, "utf8");
  for (const pid of children.split(" ").filter(Boolean)) {
    const words = (await readFile(`/proc/${pid}/cmdline`, "utf8")).split("\0");
    if (words.includes("str-orphans") && words.includes(tag)) return Number(pid);
  }
  return undefined;
}
