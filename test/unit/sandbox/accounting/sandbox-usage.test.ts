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

test("a group that was given back is another sandbox's, and is left alone", async () => {
  const workDir = await mkdtemp(join(tmpdir(), "str-test-"));
  onTestFinished(() => rm(workDir, { recursive: true }));
  const done: string[] = [];
  const group: SandboxCgroup = {
    add: async () => void done.push("add"),
    read: () => ({ cpuMs: 1, peakMemoryBytes: 1, peakProcesses: 1, memoryKills: 0 }),
    kill: () => void done.push("kill"),
    [Symbol.asyncDispose]: () => Promise.resolve(),
  };
  const cgroups = {
    controls: { memory: true, processes: true, cpu: true },
    create: () => Promise.resolve(group),
    discard: () => void done.push("discard"),
  };
  const { limits } = restrictiveProfile;
  const options = { limits, workDir, tmpfs: undefined, hasDevices: false, commandIsChild: true };
  const usage = await SandboxUsage.open(new ResourceMonitor(), cgroups, options);
  usage.kill();
  usage[Symbol.dispose]();
  usage.kill();
  await usage.enter(1);
  expect(done).toEqual(["kill", "discard"]);
});
