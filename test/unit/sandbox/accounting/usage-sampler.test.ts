/**
 * When a walk through a work directory is urgent, and a sample that fails. A real process stands
 * for a sandbox.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import type { LimitReached } from "../../../../worker/protocol/resource-limits.ts";
import { DiskUsage } from "../../../../worker/sandbox/accounting/disk-usage.ts";
import {
  type SampledGroup,
  UsageSampler,
} from "../../../../worker/sandbox/accounting/usage-sampler.ts";
import { ownFileSystem } from "../../../support/sandboxes/own-file-system.ts";
import { sandboxOf } from "./sampled-process.ts";

const MiB = 1024 * 1024;
/** Milliseconds in which all there is here is sampled. */
const longMs = 10_000;

async function newSampler(diskBytes: number, group?: SampledGroup) {
  const child = spawn("/usr/bin/sleep", ["600"]);
  await once(child, "spawn");
  const top = await ownFileSystem();
  const disk = new DiskUsage(top);
  const reported: LimitReached[] = [];
  const failures: unknown[] = [];
  const sandbox = await sandboxOf(child.pid!, { diskBytes }, (limit) => void reported.push(limit));
  const onFailed = (error: unknown) => void failures.push(error);
  const sampler = new UsageSampler({ ...sandbox, disk, group, onFailed });
  onTestFinished(() => {
    child.kill("SIGKILL");
    sampler[Symbol.dispose]();
    disk[Symbol.dispose]();
  });
  const add = (name: string, mebibytes: number): Promise<void> =>
    writeFile(join(top, name), Buffer.alloc(mebibytes * MiB, 1));
  return { sampler, reported, failures, add };
}

test("a walk is urgent while the file system has grown by as much as a sandbox may still add", async () => {
  const { sampler, reported, add } = await newSampler(16 * MiB);
  expect(sampler.isUrgent).toBe(false);
  await add("allowed", 12);
  sampler.sample(longMs, 0);
  // The walk that has seen it began when it was there: 4 MiB are left.
  expect(sampler.isUrgent).toBe(false);
  await add("more", 8);
  expect(sampler.isUrgent).toBe(true);
  expect(reported).toEqual([]);
  sampler.sample(longMs, 0);
  expect(reported).toMatchObject([{ limit: "diskBytes", bound: 16 * MiB }]);
});

test("a sample that fails is reported, once, and is the last", async () => {
  const error = new Error("no such group");
  const { sampler, reported, failures } = await newSampler(MiB, {
    controls: { memory: true, processes: true, cpu: true },
    read: () => {
      throw error;
    },
  });
  sampler.sample(longMs, 0);
  sampler.sample(longMs, 0);
  expect(sampler.isOver).toBe(true);
  expect([reported, failures]).toEqual([[], [error]]);
});
