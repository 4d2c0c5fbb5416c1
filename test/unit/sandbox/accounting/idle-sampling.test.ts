/**
 * Sandboxes that wait for their calls are looked at seldom, and as others are as soon as they have
 * one.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test, vi } from "vitest";
import type { LimitReached, Limits } from "../../../../worker/protocol/resource-limits.ts";
import { builtInProfiles } from "../../../../worker/sandbox/profile.ts";
import { DiskWalk } from "../../../../worker/sandbox/accounting/disk-usage.ts";
import { Guard, type Watch, restingLookMs } from "../../../../worker/sandbox/accounting/resource-monitor.ts";
import { patience } from "../../../support/patience.ts";

const MiB = 1024 * 1024;
const nothing = { bytes: 0, files: 0 };

/** A process that stands for a sandbox, in an empty work directory. */
async function newSandbox(limits: Partial<Limits> = {}) {
  const directory = await mkdtemp(join(tmpdir(), "str-guard-"));
  const child: ChildProcess = spawn("/bin/sleep", ["600"], { stdio: "ignore" });
  await once(child, "spawn");
  const disk = new DiskWalk(directory);
  onTestFinished(async () => {
    child.kill("SIGKILL");
    disk[Symbol.dispose]();
    await rm(directory, { recursive: true });
  });
  const told: LimitReached[] = [];
  let looks = 0;
  const sandbox = {
    firstPid: child.pid!,
    commandIsChild: false,
    limits: { ...builtInProfiles.get("permissive")!.limits, ...limits },
    disk,
    privateMemory: undefined,
    // Read once in each look.
    group: {
      controls: { memory: true, processes: true, cpu: true },
      read: () => {
        looks++;
        return {
          cpuMs: 0,
          peakMemoryBytes: 0,
          peakProcesses: 1,
          memoryKills: 0,
        };
      },
    },
    onExceeded: (limit: LimitReached) => void told.push(limit),
    onFailed: (error: unknown) => {
      throw error;
    },
  };
  const write = (sizeBytes: number) =>
    writeFile(join(directory, `f${sizeBytes}`), Buffer.alloc(sizeBytes, 1));
  return { sandbox, told, write, looks: () => looks };
}

function watch(guard: Guard, { sandbox }: Awaited<ReturnType<typeof newSandbox>>): Watch {
  const watched = guard.watch(sandbox);
  onTestFinished(() => watched[Symbol.dispose]());
  return watched;
}

async function pass(ms: number): Promise<void> {
  const fromMs = performance.now();
  await vi.waitFor(() => expect(performance.now() - fromMs).toBeGreaterThan(ms), patience);
}

test(
  "those that wait are looked at once in a while, each of many as often as one alone",
  { tags: "full" },
  async () => {
    const guard = new Guard();
    const sandboxes = await Promise.all(Array.from({ length: 8 }, () => newSandbox()));
    for (const sandbox of sandboxes) watch(guard, sandbox).rest();
    const fromMs = performance.now();
    const looks = (): readonly number[] => sandboxes.map((sandbox) => sandbox.looks());
    await vi.waitFor(() => expect(Math.min(...looks())).toBeGreaterThan(1), patience);
    // Two more than there is time for: one at the beginning, one that is due just now.
    const most = (performance.now() - fromMs) / restingLookMs + 2;
    expect(Math.max(...looks())).toBeLessThanOrEqual(most);
  },
);

test("one that has its call is looked at as others are", async () => {
  const guard = new Guard();
  const sandbox = await newSandbox();
  const watched = watch(guard, sandbox);
  watched.rest();
  watched.beginCall(nothing);
  await vi.waitFor(() => expect(sandbox.looks()).toBeGreaterThan(5), {
    timeout: 5 * restingLookMs,
    interval: 5,
  });
});

test("one that waits and goes beyond its limits is told of, once", { tags: "full" }, async () => {
  const guard = new Guard();
  const { sandbox, told, write } = await newSandbox({ diskBytes: MiB });
  const watched = guard.watch(sandbox);
  onTestFinished(() => watched[Symbol.dispose]());
  watched.rest();
  await write(2 * MiB);
  await vi.waitFor(() => expect(told).toHaveLength(1), patience);
  expect(told).toMatchObject([{ limit: "diskBytes", bound: MiB }]);
  await pass(2 * restingLookMs);
  expect(told).toHaveLength(1);
});

test("what a call brings is not the tool's doing", async () => {
  const guard = new Guard();
  const sandbox = await newSandbox({ diskBytes: MiB });
  const watched = watch(guard, sandbox);
  watched.rest();
  await sandbox.write(3 * MiB);
  watched.beginCall({ bytes: 3 * MiB, files: 1 });
  await vi.waitFor(() => expect(sandbox.looks()).toBeGreaterThan(5), patience);
  expect(sandbox.told).toEqual([]);
  await sandbox.write(2 * MiB);
  await vi.waitFor(() => expect(sandbox.told).toMatchObject([{ limit: "diskBytes" }]), patience);
});

test("nobody looks at those that are gone", async () => {
  const guard = new Guard();
  const sandbox = await newSandbox();
  const watched = watch(guard, sandbox);
  watched.rest();
  watched[Symbol.dispose]();
  await pass(2 * restingLookMs);
  expect(sandbox.looks()).toBe(0);
});
