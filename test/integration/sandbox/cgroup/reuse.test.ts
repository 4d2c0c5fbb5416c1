/**
 * Groups that are used again on this host's kernel: what the next sandbox has, and what is removed.
 */
import { once } from "node:events";
import { existsSync, writeFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { type TestContext, describe, expect, onTestFinished, test, vi } from "vitest";
import { cgroupV1, cgroupV2 } from "../../../../worker/sandbox/cgroup/dialect.ts";
import { CgroupFiles } from "../../../../worker/sandbox/cgroup/files.ts";
import { CgroupOfSandbox } from "../../../../worker/sandbox/cgroup/group.ts";
import { CgroupStock } from "../../../../worker/sandbox/cgroup/stock.ts";
import { systemClock } from "../../../../worker/support/clock.ts";
import { newId } from "../../../../worker/support/ids.ts";
import { patience } from "../../../support/patience.ts";
import { descriptorsOfGroups } from "../sandbox-host.ts";
import { freshGroups, leftBelow, requireCgroups, startIn } from "./cgroup-host.ts";

const MiB = 1024 * 1024;
const limits = { memoryBytes: 128 * MiB, processes: 8 };

/** Takes so many mebibytes, and so many milliseconds of the processor, in one process. */
const use = `
import sys, time
held = b"x" * (int(sys.argv[1]) << 20)
while time.process_time() * 1000 < int(sys.argv[2]):
    pass
`;

/** Leaves a file of so many mebibytes in memory. */
const leave = `
import sys
open(sys.argv[2], "wb").write(bytes(int(sys.argv[1]) << 20))
`;

/** A group of a worker that has a stock, below new ones of the test. */
async function groupWithStock(context: TestContext) {
  const parents = await freshGroups(requireCgroups(context));
  const isV1 = parents.length > 1;
  const [memory = "", processes = "", cpu = ""] = parents;
  if (!isV1) writeFileSync(join(memory, "cgroup.subtree_control"), "+memory +pids");
  const files = new CgroupFiles();
  const makings = {
    files,
    dialect: isV1 ? cgroupV1 : cgroupV2,
    parents: isV1
      ? [
          { directory: memory, controls: ["memory"] as const },
          { directory: processes, controls: ["processes"] as const },
          { directory: cpu, controls: ["cpu"] as const },
        ]
      : [{ directory: memory, controls: ["memory", "processes", "cpu"] as const }],
    clock: systemClock,
    onRemoveFailed(error: unknown) {
      throw error;
    },
  };
  const stock = new CgroupStock();
  onTestFinished(() => stock[Symbol.asyncDispose]());
  const name = `str-sandbox-${newId()}`;
  const group = CgroupOfSandbox.make(makings, name, limits);
  onTestFinished(() => group[Symbol.asyncDispose]());
  const start = (...argv: readonly string[]) =>
    startIn(argv, { groups: parents.map((parent) => join(parent, name)) });
  return {
    parents,
    stock,
    group,
    start,
    /** Runs a program to its end, until its memory is free. */
    async run(script: string, ...words: readonly string[]): Promise<void> {
      await once(await start("/usr/bin/python3", "-I", "-c", script, ...words), "exit");
      const processesLeft = join(processes || memory, name, "pids.current");
      await vi.waitFor(() => expect(Number(files.read(processesLeft))).toBe(0), patience);
    },
    isThere: () => existsSync(join(memory, name)),
  };
}

describe("the group of a sandbox that is gone", () => {
  test("has nothing open once it is removed", async (context) => {
    const before = await descriptorsOfGroups();
    const opened = async () =>
      (await descriptorsOfGroups()).filter((each) => !before.includes(each));
    const { stock, group, run } = await groupWithStock(context);
    await run(use, "1", "0");
    expect(group.read().cpuMs).toBeGreaterThan(0);
    expect(await opened()).not.toEqual([]);
    await stock.keep(group);
    await stock[Symbol.asyncDispose]();
    expect(await opened()).toEqual([]);
  });

  test("counts and bounds for the next one what is its own", async (context) => {
    const { stock, group, run } = await groupWithStock(context);
    await run(use, "60", "200");
    const first = group.read();
    expect(first.cpuMs).toBeGreaterThan(190);
    expect(first.peakMemoryBytes).toBeGreaterThan(60 * MiB);
    await stock.keep(group);
    expect(stock.take({ ...limits, memoryBytes: 64 * MiB })).toBeUndefined();
    expect(stock.take(limits)).toBe(group);
    expect(group.read()).toMatchObject({ cpuMs: 0, memoryKills: 0 });
    expect(group.read().peakMemoryBytes).toBeLessThanOrEqual(MiB);
    await run(use, "20", "0");
    const second = group.read();
    expect(second.cpuMs).toBeGreaterThan(0);
    expect(second.cpuMs).toBeLessThan(190);
    expect(second.peakMemoryBytes).toBeGreaterThan(20 * MiB);
    expect(second.peakMemoryBytes).toBeLessThan(60 * MiB);
    await run(use, "200", "0");
    expect(group.read().memoryKills).toBeGreaterThan(0);
  });

  test("is removed when the kernel has killed for memory in it", async (context) => {
    const { stock, group, run, isThere } = await groupWithStock(context);
    await run(use, "200", "0");
    await stock.keep(group);
    expect(isThere()).toBe(false);
    expect(stock.take(limits)).toBeUndefined();
  });

  test("is removed with a process that is left in it", async (context) => {
    const { stock, group, start, isThere } = await groupWithStock(context);
    const child = await start("/bin/sleep", "1000");
    const ended = once(child, "exit");
    await stock.keep(group);
    expect((await ended)[1]).toBe("SIGKILL");
    expect(isThere()).toBe(false);
  });

  test("is removed when files in memory are left of it", async (context) => {
    const { stock, group, run, isThere } = await groupWithStock(context);
    const path = `/dev/shm/str-test-${newId()}`;
    onTestFinished(() => rm(path, { force: true }));
    await run(leave, "8", path);
    await stock.keep(group);
    expect(isThere()).toBe(false);
  });

  test("is gone when the stock is", async (context) => {
    const { parents, stock, group, run } = await groupWithStock(context);
    await run(use, "1", "0");
    await stock.keep(group);
    expect(await leftBelow(parents)).not.toEqual([]);
    await stock[Symbol.asyncDispose]();
    expect(await leftBelow(parents)).toEqual([]);
  });
});
