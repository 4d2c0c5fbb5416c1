/**
 * Which limit a signal of the kernel's stands for.
 */
import { describe, expect, test } from "vitest";
import { cpuSlack, limitOfSignal } from "../../../worker/sandbox/exit-reason.ts";
import { restrictiveProfile } from "../../../worker/sandbox/profile.ts";
import type { TotalUsage } from "../../../worker/sandbox/totals/totals.ts";

const { limits } = restrictiveProfile;
const cpuMs = limits.cpuSeconds * 1000;

function used(changes: Partial<TotalUsage> = {}): TotalUsage {
  return {
    cpuMs: 0,
    peakMemoryBytes: undefined,
    peakProcesses: undefined,
    memoryKills: 0,
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

  test.each(["SIGKILL", "SIGXCPU"])("%s had no time left, where it had used it up", (signal) => {
    for (const ms of [cpuMs, cpuMs + 40, cpuMs * (1 - cpuSlack)]) {
      expect(limitOfSignal(signal, limits, used({ cpuMs: ms }))).toEqual({
        limit: "cpuSeconds",
        bound: limits.cpuSeconds,
        peak: ms / 1000,
      });
    }
  });

  test.each(["SIGKILL", "SIGXCPU"])("%s says nothing by itself", (signal) => {
    expect(limitOfSignal(signal, limits, used())).toBeUndefined();
    expect(limitOfSignal(signal, limits, used({ cpuMs: undefined }))).toBeUndefined();
    const almost = used({ cpuMs: cpuMs * (1 - cpuSlack) - 1 });
    expect(limitOfSignal(signal, limits, almost)).toBeUndefined();
  });

  test.each(["SIGTERM", "SIGSEGV", undefined])("%s reached no limit", (signal) => {
    const usage = used({ cpuMs, memoryKills: 1 });
    expect(limitOfSignal(signal, limits, usage)).toBeUndefined();
  });
});
