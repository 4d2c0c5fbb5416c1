/**
 * When a walk through a work directory is urgent, and when it begins. A real process stands for a
 * sandbox.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import type { LimitReached } from "../../../../worker/protocol/resource-limits.ts";
import { builtInProfiles } from "../../../../worker/sandbox/profile.ts";
import { ownFileSystem } from "../../../support/own-file-system.ts";
import { DiskWalk } from "../../../../worker/sandbox/accounting/disk-usage.ts";
import { Watched, type WatchedGroup } from "../../../../worker/sandbox/accounting/usage-sampler.ts";

const MiB = 1024 * 1024;
/** Milliseconds in which all there is here is looked at. */
const longMs = 10_000;

async function watch(diskBytes: number, group?: WatchedGroup) {
  const child = spawn("/usr/bin/sleep", ["600"]);
  await once(child, "spawn");
  const top = await ownFileSystem();
  const disk = new DiskWalk(top);
  const told: LimitReached[] = [];
  const failures: unknown[] = [];
  const { limits } = builtInProfiles.get("permissive")!;
  const watched = new Watched(
    {
      firstPid: child.pid!,
      commandIsChild: false,
      limits: { ...limits, diskBytes },
      disk,
      privateMemory: undefined,
      group,
      onExceeded: (limit) => told.push(limit),
      onFailed: (error) => failures.push(error),
    },
    (task) => task(),
  );
  onTestFinished(async () => {
    child.kill("SIGKILL");
    watched[Symbol.dispose]();
    disk[Symbol.dispose]();
  });
  const add = (name: string, mebibytes: number): Promise<void> =>
    writeFile(join(top, name), Buffer.alloc(mebibytes * MiB, 1));
  return { watched, told, failures, add };
}

test("a walk is urgent while the file system holds more by as much as a sandbox may still add", async () => {
  const { watched, told, add } = await watch(16 * MiB);
  expect(watched.isUrgent).toBe(false);
  await add("allowed", 12);
  watched.look(longMs, 0, true);
  // The walk that has seen it began when it was there: 4 MiB are left.
  expect(watched.isUrgent).toBe(false);
  await add("more", 8);
  expect(watched.isUrgent).toBe(true);
  expect(told).toEqual([]);
  watched.look(longMs, 0, true);
  expect(told).toMatchObject([{ limit: "diskBytes", bound: 16 * MiB }]);
});

test("a walk begins when it may, and then goes on whether one may begin or not", async () => {
  const { watched, told, add } = await watch(MiB);
  await add("file", 2);
  for (let looks = 0; looks < 10; looks++) watched.look(longMs, 0, false);
  expect([watched.isWalking, told]).toEqual([false, []]);
  watched.look(-longMs, 0, true);
  expect(watched.isWalking).toBe(true);
  watched.look(longMs, 0, false);
  expect(told).toMatchObject([{ limit: "diskBytes", bound: MiB }]);
});

test("a look that fails is told of, once, and is the last", async () => {
  const error = new Error("no such group");
  const { watched, told, failures } = await watch(MiB, {
    controls: { memory: true, processes: true, cpu: true },
    read: () => {
      throw error;
    },
  });
  watched.look(longMs, 0, true);
  watched.look(longMs, 0, true);
  expect(watched.isOver).toBe(true);
  expect([told, failures]).toEqual([[], [error]]);
});
