/**
 * A sandbox's accounting and its control group.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { ResourceMonitor } from "../../../../worker/sandbox/accounting/resource-monitor.ts";
import { SandboxUsage } from "../../../../worker/sandbox/accounting/sandbox-usage.ts";
import type { SandboxCgroup } from "../../../../worker/sandbox/cgroup/cgroup.ts";
import { restrictiveProfile } from "../../../../worker/sandbox/profile.ts";

/** Usage by a group that has counted so many processes, and what is done with the group. */
async function open(peakProcesses: number | undefined, isForked = false) {
  const workDir = await mkdtemp(join(tmpdir(), "str-test-"));
  onTestFinished(() => rm(workDir, { recursive: true }));
  const done: string[] = [];
  const group: SandboxCgroup = {
    add: async () => void done.push("add"),
    read: () => ({ cpuMs: 1, peakMemoryBytes: 1, peakProcesses, memoryKills: 0 }),
    kill: () => void done.push("kill"),
    [Symbol.asyncDispose]: () => Promise.resolve(),
  };
  const cgroups = {
    controls: { memory: true, processes: true, cpu: true },
    create: () => Promise.resolve(group),
    discard: () => void done.push("discard"),
  };
  const { limits } = restrictiveProfile;
  const shared = { limits, workDir, tmpfs: undefined, hasDevices: false, commandIsChild: true };
  const options = { ...shared, isForked };
  return { usage: await SandboxUsage.open(new ResourceMonitor(), cgroups, options), done };
}

test.each([
  ["one", 1, false, true],
  ["two", 2, false, false],
  ["one of a template's, whose bubblewrap is missing", 0, true, true],
  ["two of a template's", 1, true, false],
  ["none that it tells of", undefined, false, false],
])("a group that has counted %s", async (_, peakProcesses, isForked, hasCountedOne) => {
  const { usage } = await open(peakProcesses, isForked);
  expect(usage.usage.hasCountedOne).toBe(hasCountedOne);
  usage[Symbol.dispose]();
});

test("a group that was given back is another sandbox's, and is left alone", async () => {
  const { usage, done } = await open(1);
  usage.kill();
  usage[Symbol.dispose]();
  usage.kill();
  await usage.enter(1);
  expect(done).toEqual(["kill", "discard"]);
});
