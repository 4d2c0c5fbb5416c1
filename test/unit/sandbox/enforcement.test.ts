/**
 * What is said of who keeps the limits of a sandbox.
 */
import { describe, expect, test } from "vitest";
import { type Keepers, enforcementOf } from "../../../worker/sandbox/bubblewrap/enforcement.ts";

const everything: Keepers = {
  group: { memory: true, processes: true, cpu: true },
  seesProcesses: true,
  isFiltered: true,
};
const noGroup = { memory: false, processes: false, cpu: false };

describe("of a sandbox", () => {
  test("the kernel keeps memory where there is a group for it, else the guard", () => {
    expect(enforcementOf(everything).memoryBytes).toBe("kernel");
    expect(enforcementOf({ ...everything, group: noGroup }).memoryBytes).toBe("guard");
    const blind = { ...everything, group: noGroup, seesProcesses: false };
    expect(enforcementOf(blind).memoryBytes).toBe("none");
  });

  test("the guard keeps CPU time as long as something counts it", () => {
    const withoutSight = { ...everything, seesProcesses: false };
    expect(enforcementOf(everything).cpuSeconds).toBe("guard");
    expect(enforcementOf(withoutSight).cpuSeconds).toBe("guard");
    expect(enforcementOf({ ...withoutSight, group: noGroup }).cpuSeconds).toBe("none");
  });

  test("nobody keeps the CPUs where a tool can undo its placement", () => {
    expect(enforcementOf(everything).cpus).toBe("kernel");
    expect(enforcementOf({ ...everything, isFiltered: false }).cpus).toBe("none");
  });

  test("what is left is kept on every host", () => {
    for (const keepers of [
      everything,
      { group: noGroup, seesProcesses: false, isFiltered: false },
    ]) {
      expect(enforcementOf(keepers)).toMatchObject({
        processes: "kernel",
        openFiles: "kernel",
        fileSizeBytes: "kernel",
        tmpBytes: "kernel",
        diskBytes: "guard",
        files: "guard",
        statusBytes: "guard",
      });
    }
  });
});
