/**
 * Which limit a signal of the kernel's stands for.
 */
import { describe, expect, test } from "vitest";
import { limitOfSignal } from "../../../worker/sandbox/accounting/exit-reason.ts";
import { restrictiveProfile } from "../../../worker/sandbox/profile.ts";
import type { TotalUsage } from "../../../worker/sandbox/accounting/sandbox-usage.ts";

const { limits } = restrictiveProfile;
const cpuMs = limits.cpuSeconds * 1000;

function used(changes: Partial<TotalUsage> = {}): TotalUsage {
  return {
    cpuMs: 0,
    peakMemoryBytes: undefined,
    peakProcesses: undefined,
    memoryKills: 0,
    hasCountedOne: false,
    ...changes,
  };
}

describe("a command that ended by", () => {
  test("SIGXFSZ wrote a file that is too large", () => {
    expect(limitOfSignal("SIGXFSZ", limits, used())).toEqual({
      limit: "fileSizeBytes",
      bound: limits.fileSizeBytes,
      peak: undefined,
    });
  });

  test("SIGKILL had no memory left, where its group had a process killed for it", () => {
    const usage = used({ memoryKills: 1, peakMemoryBytes: limits.memoryBytes, cpuMs });
    expect(limitOfSignal("SIGKILL", limits, usage)).toEqual({
      limit: "memoryBytes",
      bound: limits.memoryBytes,
      peak: limits.memoryBytes,
    });
  });

  const bound = limits.cpuSeconds;

  test.each(["SIGKILL", "SIGXCPU"])("%s had no time left, where it had used it up", (signal) => {
    for (const ms of [cpuMs, cpuMs + 40]) {
      const reached = { limit: "cpuSeconds", bound, peak: ms / 1000 };
      expect(limitOfSignal(signal, limits, used({ cpuMs: ms }))).toEqual(reached);
    }
  });

  test("SIGXCPU had no time left by the kernel's word, whatever else was measured", () => {
    const early = limitOfSignal("SIGXCPU", limits, used({ cpuMs: cpuMs * 0.8 }));
    expect(early).toEqual({ limit: "cpuSeconds", bound, peak: bound * 0.8 });
    const unmeasured = limitOfSignal("SIGXCPU", limits, used({ cpuMs: undefined }));
    expect(unmeasured).toEqual({ limit: "cpuSeconds", bound, peak: undefined });
  });

  test("SIGKILL says nothing by itself", () => {
    for (const ms of [0, cpuMs - 1, undefined])
      expect(limitOfSignal("SIGKILL", limits, used({ cpuMs: ms }))).toBeUndefined();
  });

  test.each(["SIGTERM", "SIGSEGV", undefined])("%s reached no limit", (signal) => {
    const usage = used({ cpuMs, memoryKills: 1 });
    expect(limitOfSignal(signal, limits, usage)).toBeUndefined();
  });
});
