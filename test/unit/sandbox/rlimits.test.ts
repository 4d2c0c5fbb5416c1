/**
 * Limits as a command prefix.
 */
import { readFile } from "node:fs/promises";
import { fc, test as propertyTest } from "../../support/properties/property.ts";
import { describe, expect, test } from "vitest";
import { builtInProfiles } from "../../../worker/sandbox/profile.ts";
import {
  type HardLimits,
  clampedLimits,
  limitPrefix,
  parseCpuList,
  parseHardLimits,
  placement,
} from "../../../worker/sandbox/rlimits.ts";

const { limits: restrictive } = builtInProfiles.get("restrictive")!;
const { limits: standard } = builtInProfiles.get("standard")!;

const unlimited: HardLimits = {
  memoryBytes: Infinity,
  cpuSeconds: Infinity,
  fileSizeBytes: Infinity,
  openFiles: Infinity,
  processes: Infinity,
  core: Infinity,
  msgqueue: Infinity,
  sigpending: Infinity,
  memlock: Infinity,
  rtprio: Infinity,
  nice: Infinity,
};

/** As proc_pid_limits(5) shows them. */
const procSelfLimits = `Limit                     Soft Limit           Hard Limit           Units     
Max cpu time              unlimited            unlimited            seconds   
Max file size             1024                 2048                 bytes     
Max data size             unlimited            unlimited            bytes     
Max stack size            8388608              unlimited            bytes     
Max core file size        0                    unlimited            bytes     
Max resident set          unlimited            unlimited            bytes     
Max processes             96285                96286                processes 
Max open files            1024                 524288               files     
Max locked memory         8388608              8388608              bytes     
Max address space         unlimited            4294967296           bytes     
Max file locks            unlimited            unlimited            locks     
Max pending signals       96365                96366                signals   
Max msgqueue size         819200               819201               bytes     
Max nice priority         0                    1                    
Max realtime priority     2                    3                    
Max realtime timeout      unlimited            unlimited            us        
`;

describe("the hard limits of a process", () => {
  test("are read from the kernel's table, the hard column of it", () => {
    expect(parseHardLimits(procSelfLimits)).toEqual({
      memoryBytes: 4_294_967_296,
      cpuSeconds: Infinity,
      fileSizeBytes: 2048,
      openFiles: 524_288,
      processes: 96_286,
      core: Infinity,
      msgqueue: 819_201,
      sigpending: 96_366,
      memlock: 8_388_608,
      rtprio: 3,
      nice: 1,
    });
  });

  test("are unlimited where the table has no row", () => {
    expect(parseHardLimits("")).toEqual(unlimited);
  });

  test("can be read of this very process", async () => {
    const own = parseHardLimits(await readFile("/proc/self/limits", "utf8"));
    for (const value of Object.values(own)) expect(value).toBeGreaterThanOrEqual(0);
    expect(own.openFiles).toBeGreaterThan(0);
  });
});

describe("the prefix of a command", () => {
  test("sets every limit of the profile, hard as well as soft but for time, and those that are for all", () => {
    expect(limitPrefix(restrictive, "address-space", unlimited).join(" ")).toMatchInlineSnapshot(
      `"/usr/bin/prlimit --as=536870912:536870912 --cpu=60:61 --fsize=67108864:67108864 --nofile=128:128 --nproc=32:32 --core=0:0 --msgqueue=0:0 --sigpending=1024:1024 --memlock=65536:65536 --rtprio=0:0 --nice=0:0 --"`,
    );
  });

  test("leaves address space alone for programs whose memory is bounded otherwise", () => {
    const prefix = limitPrefix(restrictive, "resident", unlimited);
    const options = limitPrefix(restrictive, "address-space", unlimited);
    expect(prefix).toEqual(options.filter((option) => !option.startsWith("--as=")));
    expect(prefix).toHaveLength(options.length - 1);
  });

  test("never asks for more than the worker itself has, which would make every call fail", () => {
    const hard = { ...unlimited, openFiles: 100, fileSizeBytes: 4096, sigpending: 7, memlock: 0 };
    const prefix = limitPrefix(restrictive, "address-space", hard);
    expect(prefix).toContain("--nofile=100:100");
    expect(prefix).toContain("--fsize=4096:4096");
    expect(prefix).toContain("--nproc=32:32");
    expect(prefix).toContain("--sigpending=7:7");
    expect(prefix).toContain("--memlock=0:0");
    expect(clampedLimits(restrictive, hard)).toEqual(["fileSizeBytes", "openFiles"]);
  });

  test("sets nothing where neither profile nor worker has a limit", () => {
    const limits = { ...restrictive, processes: Infinity };
    expect(limitPrefix(limits, "address-space", unlimited)).toContain(
      "--nproc=unlimited:unlimited",
    );
    expect(limitPrefix(limits, "address-space", { ...unlimited, processes: 7 })).toContain(
      "--nproc=7:7",
    );
  });

  test("names no limit as tightened where the worker has as much as the profile", () => {
    expect(clampedLimits(restrictive, unlimited)).toEqual([]);
    expect(clampedLimits(restrictive, { ...unlimited, openFiles: 128 })).toEqual([]);
  });
});

describe("the placement of a command", () => {
  test("is on as many CPUs as the profile says", () => {
    expect(placement(restrictive, [0, 1, 2, 3], 0)).toEqual([
      ...["/usr/bin/taskset", "--cpu-list", "0"],
    ]);
    expect(placement(standard, [0, 1, 2, 3], 0)[2]).toBe("0,1");
  });

  test("leaves the CPUs alone where there are no more of them than the profile allows", () => {
    expect(placement(standard, [4, 5], 3)).toEqual([]);
  });

  test("spreads one call after the other over the CPUs, by the numbers the host gave them", () => {
    const placesOf = (cpuIds: readonly number[]) =>
      [0, 1, 2, 3].map((turn) => placement(standard, cpuIds, turn)[2]);
    expect(placesOf([0, 1, 2, 3])).toEqual(["0,1", "2,3", "0,1", "2,3"]);
    expect(placesOf([2, 3, 8])).toEqual(["2,3", "8,2", "3,8", "2,3"]);
  });

  propertyTest.prop([
    fc.uniqueArray(fc.nat(255), { minLength: 1, maxLength: 32 }),
    fc.nat(1_000_000),
    fc.constantFrom(...builtInProfiles.values()),
  ])("chooses distinct CPUs of the worker's own, whatever the turn", (cpuIds, turn, { limits }) => {
    const [, , list] = placement(limits, cpuIds, turn);
    if (cpuIds.length <= limits.cpus) {
      expect(list).toBeUndefined();
    } else {
      const chosen = list!.split(",").map(Number);
      expect(new Set(chosen).size).toBe(limits.cpus);
      expect(cpuIds).toEqual(expect.arrayContaining(chosen));
    }
  });
});

describe("a CPU list of the kernel", () => {
  test.each([
    ["0", [0]],
    ["0-3", [0, 1, 2, 3]],
    ["0-1,8", [0, 1, 8]],
    ["3,5-6,64-65\n", [3, 5, 6, 64, 65]],
  ])("reads %j as CPUs %j", (list, cpuIds) => {
    expect(parseCpuList(list)).toEqual(cpuIds);
  });

  propertyTest.prop([fc.uniqueArray(fc.nat(300), { minLength: 1 })])(
    "brings back the CPUs that were written into it",
    (cpuIds) => {
      const sorted = cpuIds.toSorted((a, b) => a - b);
      expect(parseCpuList(toCpuList(sorted))).toEqual(sorted);
    },
  );
});

/** Writes ranges as the kernel does. */
function toCpuList(cpuIds: readonly number[]): string {
  const ranges: [number, number][] = [];
  for (const id of cpuIds) {
    const last = ranges.at(-1);
    if (last?.[1] === id - 1) last[1] = id;
    else ranges.push([id, id]);
  }
  return ranges
    .map(([first, last]) => (first === last ? `${first}` : `${first}-${last}`))
    .join(",");
}
