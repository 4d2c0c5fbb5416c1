/**
 * Groups that are used again, in recorded trees of version 2; those of this host's kernel are in
 * test/integration/sandbox/cgroup/reuse.test.ts.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { setImmediate as othersTurn } from "node:timers/promises";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import type { Cgroups, SandboxCgroup } from "../../../worker/sandbox/cgroup/cgroup.ts";
import { openCgroups } from "../../../worker/sandbox/cgroup/host-cgroups.ts";
import { maxKept } from "../../../worker/sandbox/cgroup/stock.ts";
import type { Limits } from "../../../worker/protocol/resource-limits.ts";
import { restrictiveProfile } from "../../../worker/sandbox/profile.ts";
import { newId } from "../../../worker/support/ids.ts";
import { patience } from "../../support/patience.ts";
import { RecordedCgroups } from "./recorded-cgroups.ts";

const { limits } = restrictiveProfile;
const container = "/sys/fs/cgroup";
const MiB = 1024 * 1024;
const unused = { cpuMs: 0, peakMemoryBytes: 0, peakProcesses: 0, memoryKills: 0 };

/** A worker with its one sandbox's group, and the names of all groups of sandboxes. */
async function hostWithGroup(prepare: (files: RecordedCgroups) => void = () => undefined) {
  const files = new RecordedCgroups("container-v2");
  files.lay(container, ["memory", "pids"], [process.pid]);
  prepare(files);
  const { cgroups } = await openCgroups({
    clock: { monotonicMs: () => performance.now(), sleep: () => othersTurn() },
    newId,
    onRemoveFailed(error) {
      throw error;
    },
    files,
  });
  const made = new Set<SandboxCgroup>();
  onTestFinished(async () => {
    for (const group of made) await group[Symbol.asyncDispose]();
    await cgroups![Symbol.asyncDispose]();
  });
  const create = async (bounds: Limits = limits): Promise<SandboxCgroup> => {
    const group = await cgroups!.create(bounds);
    made.add(group);
    return group;
  };
  const names = () => files.groupsIn(container).filter((name) => name.startsWith("str-sandbox-"));
  const group = await create();
  const [name = ""] = names();
  const set = (file: string, text: string) => files.set(join(container, name, file), text);
  return { files, cgroups: cgroups!, create, group, name, names, set };
}

/** Gives a group back, and waits until that has come to something. */
async function giveBack(cgroups: Cgroups, group: SandboxCgroup): Promise<void> {
  cgroups.discard(group);
  await othersTurn();
  await othersTurn();
}

describe("the group of a sandbox that is gone", () => {
  test("is that of the next one with the same limits, which has its own usage", async () => {
    const { files, cgroups, create, group, name, names, set } = await hostWithGroup();
    set("cpu.stat", "usage_usec 1234500\n");
    set("memory.peak", `${200 * MiB}\n`);
    set("memory.current", "4096\n");
    set("pids.peak", "2\n");
    await giveBack(cgroups, group);
    const next = await create({ ...limits });
    expect(names()).toEqual([name]);
    expect(next.read()).toEqual({ ...unused, peakMemoryBytes: 4096 });
    set("cpu.stat", "usage_usec 1300500\n");
    set("memory.current", `${3 * MiB}\n`);
    set("pids.peak", "5\n");
    const events = "oom_kill 1\n";
    set("memory.events", events);
    expect(next.read()).toEqual({
      cpuMs: 66,
      peakMemoryBytes: 3 * MiB,
      peakProcesses: 3,
      memoryKills: 1,
    });
    expect(files.get(join(container, name, "memory.max"))).toBe(String(limits.memoryBytes));
  });

  test.for([
    ["memory", { memoryBytes: limits.memoryBytes / 2 }],
    ["processes", { processes: limits.processes - 1 }],
  ] as const)("is not that of one with another limit of %s", async ([, other]) => {
    const { cgroups, create, group, name, names } = await hostWithGroup();
    await giveBack(cgroups, group);
    await create({ ...limits, ...other });
    expect(names()).toHaveLength(2);
    await create();
    expect(names()).toHaveLength(2);
    expect(names()).toContain(name);
  });

  test("is not two sandboxes' at a time", async () => {
    const { cgroups, create, group, names } = await hostWithGroup();
    await giveBack(cgroups, group);
    expect(await create()).not.toBe(await create());
    expect(names()).toHaveLength(2);
  });

  const spoilt: readonly (readonly [string, Readonly<Record<string, string>>])[] = [
    ["a process that is not reaped", { "pids.current": "1\n" }],
    ["charged memory", { "memory.current": `${2 * MiB}\n` }],
    ["a kill for memory", { "memory.events": "oom_kill 1\n" }],
    ["a peak of processes that the next one may not reach", { "pids.peak": "3\n" }],
  ];
  test.for(spoilt)("is removed where it has %s", async ([, files]) => {
    const { cgroups, create, group, name, names, set } = await hostWithGroup();
    for (const [file, text] of Object.entries(files)) set(file, text);
    await giveBack(cgroups, group);
    expect(names()).toEqual([]);
    await create();
    expect(names()).not.toContain(name);
  });

  test("is removed where a process is in it, also without a count, and the process is killed", async () => {
    const { files, cgroups, group, name, names } = await hostWithGroup();
    rmSync(join(files.root, container, name, "pids.current"));
    const child = spawn("/bin/sleep", ["1000"], { stdio: "ignore" });
    onTestFinished(() => void child.kill("SIGKILL"));
    await once(child, "spawn");
    await group.add(child.pid!);
    const ended = once(child, "exit");
    await giveBack(cgroups, group);
    expect((await ended)[1]).toBe("SIGKILL");
    await vi.waitFor(() => expect(names()).toEqual([]), patience);
  });

  test.for(["pids.current", "memory.current", "memory.events"])(
    "is removed where %s cannot be read",
    async (file) => {
      const { files, cgroups, group, name, names } = await hostWithGroup();
      rmSync(join(files.root, container, name, file));
      await giveBack(cgroups, group);
      expect(names()).toEqual([]);
    },
  );

  test("is not used again when another process has removed it, and other groups are", async () => {
    const { files, cgroups, create, group, name, names } = await hostWithGroup();
    const second = await create();
    const [other = ""] = names().filter((one) => one !== name);
    await giveBack(cgroups, group);
    await giveBack(cgroups, second);
    rmSync(join(files.root, container, other), { recursive: true });
    await create();
    expect(names()).toEqual([name]);
  });

  test("is removed where a process could not be moved into all of it", async () => {
    const { files, cgroups, group, name, names } = await hostWithGroup();
    files.refusals.set(join(container, name), "EPERM");
    await expect(group.add(process.pid)).rejects.toThrow("cannot move a process into");
    files.refusals.clear();
    await giveBack(cgroups, group);
    expect(names()).toEqual([]);
  });

  test("is used once where peaks of memory never begin anew, and from then on removed", async () => {
    const { files, cgroups, create, group, name, names } = await hostWithGroup((host) => {
      host.resetsPeaks = false;
    });
    await giveBack(cgroups, group);
    const next = await create();
    expect(names()).toHaveLength(1);
    const [other = ""] = names();
    expect(other).not.toBe(name);
    files.set(join(container, other, "memory.peak"), "12345\n");
    expect(next.read()).toEqual({ ...unused, peakMemoryBytes: 12345 });
    await giveBack(cgroups, next);
    expect(names()).toEqual([]);
  });

  test("is used again where the kernel knows no peaks", async () => {
    const { files, cgroups, create, group, name, names } = await hostWithGroup();
    for (const file of ["memory.peak", "pids.peak"])
      rmSync(join(files.root, container, name, file));
    await giveBack(cgroups, group);
    const next = await create();
    expect(names()).toEqual([name]);
    expect(next.read()).toMatchObject({ peakMemoryBytes: undefined, peakProcesses: undefined });
  });
});

test("so many groups are kept, the last ones, and none at the end", async () => {
  const { files, cgroups, create, group, name, names } = await hostWithGroup();
  await giveBack(cgroups, group);
  const other = { ...limits, memoryBytes: 2 * limits.memoryBytes };
  const groups = await Promise.all(Array.from({ length: maxKept }, () => create(other)));
  expect(names()).toHaveLength(maxKept + 1);
  for (const each of groups) await giveBack(cgroups, each);
  expect(names()).toHaveLength(maxKept);
  expect(names()).not.toContain(name);
  await cgroups[Symbol.asyncDispose]();
  expect(files.groupsIn(container)).toEqual([]);
});
