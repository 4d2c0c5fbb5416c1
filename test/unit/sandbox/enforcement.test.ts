/**
 * What is said of who keeps the limits of a sandbox.
 */
import { describe, expect, test } from "vitest";
import {
  type Keepers,
  enforcementOf,
  unkeptLimits,
} from "../../../worker/sandbox/bubblewrap/enforcement.ts";
import { observation } from "./bubblewrap/trial-observation.ts";

const everything: Keepers = {
  group: { memory: true, processes: true, cpu: true },
  seesProcesses: true,
  isFiltered: true,
  unkept: [],
};
const noGroup = { memory: false, processes: false, cpu: false };

describe("of a sandbox", () => {
  test("the kernel keeps memory where there is a group for it, else the resource monitor", () => {
    expect(enforcementOf(everything).memoryBytes).toBe("kernel");
    expect(enforcementOf({ ...everything, group: noGroup }).memoryBytes).toBe("guard");
    const blind = { ...everything, group: noGroup, seesProcesses: false };
    expect(enforcementOf(blind).memoryBytes).toBe("none");
  });

  test("the resource monitor keeps CPU time as long as something counts it", () => {
    const withoutSight = { ...everything, seesProcesses: false };
    expect(enforcementOf(everything).cpuSeconds).toBe("guard");
    expect(enforcementOf(withoutSight).cpuSeconds).toBe("guard");
    expect(enforcementOf({ ...withoutSight, group: noGroup }).cpuSeconds).toBe("none");
  });

  test("nobody keeps the CPUs where a tool can undo its placement", () => {
    expect(enforcementOf(everything).cpus).toBe("kernel");
    expect(enforcementOf({ ...everything, isFiltered: false }).cpus).toBe("none");
  });

  test("nobody keeps what sandboxes got past in a trial, but for processes that have a group", () => {
    const byKernel = ["processes", "openFiles", "fileSizeBytes", "tmpBytes"] as const;
    for (const limit of byKernel) {
      const keepers = { ...everything, group: noGroup, unkept: [limit] };
      for (const name of byKernel)
        expect(enforcementOf(keepers)[name]).toBe(name === limit ? "none" : "kernel");
    }
    expect(enforcementOf({ ...everything, unkept: ["processes"] }).processes).toBe("kernel");
  });

  test("what is left is kept on every host", () => {
    const least = { group: noGroup, seesProcesses: false, isFiltered: false, unkept: [] };
    for (const keepers of [everything, least]) {
      expect(enforcementOf(keepers)).toMatchObject({
        diskBytes: "guard",
        files: "guard",
        statusBytes: "guard",
      });
    }
  });
});

describe("of limits of the kernel's, a trial", () => {
  test("that was held everywhere takes none away", () => {
    expect(unkeptLimits([observation(), observation({ profile: "standard" })])).toEqual([]);
  });

  test.each([
    ["had another limit than was set", { wrongLimits: ["openFiles"] }, "openFiles"],
    ["wrote a file beyond its size", { wrongLimits: ["fileSizeBytes"] }, "fileSizeBytes"],
    ["was refused no process", { startedProcesses: undefined }, "processes"],
    ["filled memory beyond its size", { endless: ["/dev/shm"] }, "tmpBytes"],
  ] as const)("that %s in one sandbox takes that one away", (_, shown, limit) => {
    expect(unkeptLimits([observation(), observation(shown)])).toEqual([limit]);
  });
});
