/**
 * A real process that stands for a sandbox, with an empty work directory.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import type { LimitReached, Limits } from "../../../../worker/protocol/resource-limits.ts";
import { DiskUsage } from "../../../../worker/sandbox/accounting/disk-usage.ts";
import type { ResourceMonitor } from "../../../../worker/sandbox/accounting/resource-monitor.ts";
import {
  type SampledSandbox,
  UsageSampler,
} from "../../../../worker/sandbox/accounting/usage-sampler.ts";
import { builtInProfiles } from "../../../../worker/sandbox/profile.ts";

/** Limits that nothing here reaches. */
const { limits: wide } = builtInProfiles.get("permissive")!;

/** Its work directory is removed after the test. */
export async function sandboxOf(
  pid: number,
  limits: Partial<Limits>,
  onExceeded: (limit: LimitReached) => void,
): Promise<SampledSandbox & { readonly workDir: string }> {
  const workDir = await mkdtemp(join(tmpdir(), "str-sampled-"));
  const disk = new DiskUsage(workDir);
  onTestFinished(async () => {
    disk[Symbol.dispose]();
    await rm(workDir, { recursive: true });
  });
  return {
    firstPid: pid,
    commandIsChild: false,
    limits: { ...wide, ...limits },
    workDir,
    disk,
    tmpfs: undefined,
    hasDevices: false,
    group: undefined,
    inTurn: (task) => task(),
    onExceeded,
    onFailed: (error) => {
      throw error;
    },
  };
}

/** Samples it until the test is over, or the result is disposed. */
export function watch(monitor: ResourceMonitor, sandbox: SampledSandbox) {
  const sampler = new UsageSampler(sandbox);
  monitor.watch(sampler);
  const end = (): void => {
    monitor.remove(sampler);
    sampler[Symbol.dispose]();
  };
  onTestFinished(end);
  return { sampler, [Symbol.dispose]: end };
}
