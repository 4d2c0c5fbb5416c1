/**
 * Idle sandboxes are sampled seldom, and as others are as soon as they have a call.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, onTestFinished, test, vi } from "vitest";
import type { LimitReached, Limits } from "../../../../worker/protocol/resource-limits.ts";
import {
  ResourceMonitor,
  idleSampleMs,
} from "../../../../worker/sandbox/accounting/resource-monitor.ts";
import { patience } from "../../../support/patience.ts";
import { sandboxOf, watch } from "./sampled-process.ts";

const MiB = 1024 * 1024;

/** A sandbox that is sampled, with the number of samples. */
async function newSandbox(monitor: ResourceMonitor, limits: Partial<Limits> = {}) {
  const child = spawn("/bin/sleep", ["600"], { stdio: "ignore" });
  await once(child, "spawn");
  onTestFinished(() => void child.kill("SIGKILL"));
  const reported: LimitReached[] = [];
  let samples = 0;
  const sandbox = await sandboxOf(child.pid!, limits, (limit) => void reported.push(limit));
  const group = {
    controls: { memory: true, processes: true, cpu: true },
    // Once in each sample.
    read: () => {
      samples++;
      return { cpuMs: 0, peakMemoryBytes: 0, peakProcesses: 1, memoryKills: 0 };
    },
  };
  const { sampler, [Symbol.dispose]: end } = watch(monitor, { ...sandbox, group });
  const write = (sizeBytes: number) =>
    writeFile(join(sandbox.workDir, `f${sizeBytes}`), Buffer.alloc(sizeBytes, 1));
  return { sampler, end, reported, write, samples: () => samples };
}

async function pass(ms: number): Promise<void> {
  const fromMs = performance.now();
  await vi.waitFor(() => expect(performance.now() - fromMs).toBeGreaterThan(ms), patience);
}

test(
  "idle ones are sampled once in a while, each of many as often as one alone",
  { tags: "full" },
  async () => {
    const monitor = new ResourceMonitor();
    const sandboxes = await Promise.all(Array.from({ length: 8 }, () => newSandbox(monitor)));
    for (const { sampler } of sandboxes) monitor.watchIdle(sampler);
    const fromMs = performance.now();
    const samples = (): readonly number[] => sandboxes.map((sandbox) => sandbox.samples());
    const before = Math.max(...samples());
    await vi.waitFor(() => expect(Math.min(...samples())).toBeGreaterThan(before + 1), patience);
    // Two more than there is time for: one at the beginning, one that is just due.
    const most = before + (performance.now() - fromMs) / idleSampleMs + 2;
    expect(Math.max(...samples())).toBeLessThanOrEqual(most);
  },
);

test("one that has its call is sampled as others are", async () => {
  const monitor = new ResourceMonitor();
  const { sampler, samples } = await newSandbox(monitor);
  monitor.watchIdle(sampler);
  monitor.watch(sampler);
  await vi.waitFor(() => expect(samples()).toBeGreaterThan(5), {
    timeout: 5 * idleSampleMs,
    interval: 5,
  });
});

test("an idle one that exceeds its limits is reported, once", { tags: "full" }, async () => {
  const monitor = new ResourceMonitor();
  const { sampler, reported, write } = await newSandbox(monitor, { diskBytes: MiB });
  monitor.watchIdle(sampler);
  await write(2 * MiB);
  await vi.waitFor(() => expect(reported).toHaveLength(1), patience);
  expect(reported).toMatchObject([{ limit: "diskBytes", bound: MiB }]);
  await pass(2 * idleSampleMs);
  expect(reported).toHaveLength(1);
});

test("files of a call are not the tool's, also while the sandbox is idle", async () => {
  const monitor = new ResourceMonitor();
  const { sampler, reported, write, samples } = await newSandbox(monitor, { diskBytes: MiB });
  monitor.watchIdle(sampler);
  sampler.stage(() => ({ bytes: 3 * MiB, files: 1 }));
  await write(3 * MiB);
  const before = samples();
  await vi.waitFor(() => expect(samples()).toBeGreaterThan(before), patience);
  monitor.watch(sampler);
  await vi.waitFor(() => expect(samples()).toBeGreaterThan(before + 5), patience);
  expect(reported).toEqual([]);
  await write(2 * MiB);
  await vi.waitFor(() => expect(reported).toMatchObject([{ limit: "diskBytes" }]), patience);
});

test("a sandbox that has ended is not sampled", async () => {
  const monitor = new ResourceMonitor();
  const { sampler, end, samples } = await newSandbox(monitor);
  monitor.watchIdle(sampler);
  end();
  const before = samples();
  await pass(2 * idleSampleMs);
  expect(samples()).toBe(before);
});
