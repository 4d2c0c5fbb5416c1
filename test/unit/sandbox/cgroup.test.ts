/**
 * What a worker makes of the control groups that it finds itself in. Groups of version 2 are
 * recorded; those of the host are in test/integration/sandbox/cgroup/cgroup.test.ts.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import type { Cgroups, CgroupsFound } from "../../../worker/sandbox/cgroup/cgroup.ts";
import { cgroupV1 } from "../../../worker/sandbox/cgroup/dialect.ts";
import { ownGroupV1, ownGroupV2 } from "../../../worker/sandbox/cgroup/discovery.ts";
import { openCgroups } from "../../../worker/sandbox/cgroup/host-cgroups.ts";
import { cgroupNames, isLeftBehind } from "../../../worker/sandbox/cgroup/names.ts";
import { cgroupRemedies } from "../../../worker/sandbox/cgroup/refusal.ts";
import { restrictiveProfile } from "../../../worker/sandbox/profile.ts";
import { type Clock, systemClock } from "../../../worker/support/clock.ts";
import { newId } from "../../../worker/support/ids.ts";
import { RecordedCgroups, type RecordedHost } from "./recorded-cgroups.ts";

const { limits } = restrictiveProfile;
const container = "/sys/fs/cgroup";
const service = "/sys/fs/cgroup/system.slice/str-worker.service";
const all = ["cpu", "memory", "pids"];

/** A host whose worker is alone in its group, which has these controllers. */
function host(name: RecordedHost, directory: string, controllers = all): RecordedCgroups {
  const files = new RecordedCgroups(name);
  files.lay(directory, controllers, [process.pid]);
  return files;
}

async function open(files: RecordedCgroups): Promise<CgroupsFound> {
  return openCgroups({
    clock: systemClock,
    newId,
    onRemoveFailed(error) {
      throw error;
    },
    files,
  });
}

async function opened(files: RecordedCgroups): Promise<Cgroups> {
  const { cgroups, reason } = await open(files);
  expect(reason).toBeUndefined();
  return cgroups!;
}

/** A process that goes on until it is killed. */
async function goesOn(): Promise<ChildProcess & { readonly pid: number }> {
  const child = spawn("/bin/sleep", ["1000"], { stdio: "ignore" });
  onTestFinished(() => void child.kill("SIGKILL"));
  await once(child, "spawn");
  return child as ChildProcess & { readonly pid: number };
}

/** The one group of a sandbox below a group. */
function onlySandboxIn(files: RecordedCgroups, directory: string): string {
  const names = files.groupsIn(directory).filter((name) => name.startsWith("str-sandbox-"));
  expect(names).toHaveLength(1);
  return join(directory, names[0]!);
}

describe("the worker's own group", () => {
  test("is found in the one hierarchy of version 2, below a cgroup namespace or not", () => {
    expect(ownGroupV2(host("container-v2", container))).toEqual({
      directory: container,
      controllers: all,
    });
    expect(ownGroupV2(host("service-v2", service, ["pids"]))).toEqual({
      directory: service,
      controllers: ["pids"],
    });
  });

  test("is found in each hierarchy of version 1, also where the mount shows a part of it only", () => {
    const hybrid = host("hybrid", "/sys/fs/cgroup/memory/process_api/79d2");
    expect(ownGroupV1(hybrid, "memory").directory).toBe("/sys/fs/cgroup/memory/process_api/79d2");
    const part = host("container-v1", "/sys/fs/cgroup/cpu,cpuacct");
    expect(ownGroupV1(part, "cpuacct").directory).toBe("/sys/fs/cgroup/cpu,cpuacct");
    const spaced = host("container-v1", "/sys/fs/cgroup/memory of the container");
    expect(ownGroupV1(spaced, "memory").directory).toBe("/sys/fs/cgroup/memory of the container");
  });

  test("is told to be read-only, not to be seen, or not to be mounted", () => {
    const readOnly = host("container-v2-read-only", container);
    expect(() => ownGroupV2(readOnly)).toThrow(
      expect.objectContaining({ code: "read-only", message: `${container} is mounted read-only` }),
    );
    const partly = host("container-v1", "/sys/fs/cgroup/pids");
    expect(() => ownGroupV1(partly, "pids")).toThrow(
      expect.objectContaining({ code: "read-only" }),
    );
    const foreign = new RecordedCgroups("container-v2");
    foreign.lay(container, all, [1]);
    expect(() => ownGroupV2(foreign)).toThrow(expect.objectContaining({ code: "not-visible" }));
    const none = new RecordedCgroups("no-cgroups");
    expect(() => ownGroupV2(none)).toThrow(expect.objectContaining({ code: "not-mounted" }));
    expect(() => ownGroupV1(none, "pids")).toThrow(
      expect.objectContaining({ code: "not-mounted" }),
    );
  });
});

describe("a worker that is alone in its group of version 2", () => {
  test.each([
    ["container-v2", container],
    ["service-v2", service],
  ] as const)("goes to one below, and is back at the end (%s)", async (name, directory) => {
    const files = host(name, directory);
    const child = await goesOn();
    files.lay(directory, all, [process.pid, child.pid]);
    const before = files.groupsIn(directory);
    const cgroups = await opened(files);
    expect(cgroups).toMatchObject({
      version: 2,
      controls: { memory: true, processes: true, cpu: true },
      description: "cgroup v2 (memory, processes, cpu)",
    });
    expect(files.processesIn(directory)).toEqual([]);
    expect(files.processesIn(join(directory, "str-worker"))).toEqual([process.pid, child.pid]);
    expect(files.get(join(directory, "cgroup.subtree_control"))).toBe("memory pids");
    await cgroups[Symbol.asyncDispose]();
    expect(files.processesIn(directory)).toEqual([process.pid, child.pid]);
    expect(files.groupsIn(directory)).toEqual(before);
    expect(files.get(join(directory, "cgroup.subtree_control"))).toBe("");
  });

  test("goes to the one that a killed worker left, too", async () => {
    const files = host("container-v2", container);
    files.make(join(container, "str-worker"));
    const cgroups = await opened(files);
    expect(files.processesIn(join(container, "str-worker"))).toEqual([process.pid]);
    await cgroups[Symbol.asyncDispose]();
    expect(files.groupsIn(container)).toEqual([]);
  });

  test("stays where it is when the controllers are passed on already", async () => {
    const files = host("container-v2", container);
    files.set(join(container, "cgroup.subtree_control"), "memory pids\n");
    await using _cgroups = await opened(files);
    expect(files.groupsIn(container)).toEqual([]);
    expect(files.processesIn(container)).toEqual([process.pid]);
  });

  test("leaves the controllers to a group that somebody else has made since", async () => {
    const files = host("container-v2", container);
    const failures: unknown[] = [];
    const { cgroups } = await openCgroups({
      clock: systemClock,
      newId,
      onRemoveFailed: (error) => void failures.push(error),
      files,
    });
    files.make(join(container, "other"));
    await cgroups![Symbol.asyncDispose]();
    expect(files.get(join(container, "cgroup.subtree_control"))).toBe("memory pids");
    expect(failures).toEqual([expect.objectContaining({ code: "EBUSY" })]);
  });
});

describe("a sandbox's group of version 2", () => {
  test("bounds memory, swap and processes, and ends all when memory is used up", async () => {
    const files = host("container-v2", container);
    await using cgroups = await opened(files);
    await using _group = await cgroups.create(limits);
    const group = onlySandboxIn(files, container);
    expect(files.get(join(group, "memory.max"))).toBe(String(limits.memoryBytes));
    expect(files.get(join(group, "memory.swap.max"))).toBe("0");
    expect(files.get(join(group, "memory.oom.group"))).toBe("1");
    expect(files.get(join(group, "pids.max"))).toBe(String(limits.processes + 2));
  });

  test("is made without what some kernels do without", async () => {
    const files = host("container-v2", container);
    const make = files.make.bind(files);
    files.make = (directory) => {
      make(directory);
      for (const file of ["memory.swap.max", "memory.oom.group"])
        rmSync(join(files.root, directory, file), { force: true });
    };
    await using cgroups = await opened(files);
    await using _group = await cgroups.create(limits);
    const group = onlySandboxIn(files, container);
    expect(files.get(join(group, "memory.max"))).toBe(String(limits.memoryBytes));
    expect(existsSync(join(files.root, group, "memory.swap.max"))).toBe(false);
  });

  test("holds the process that is moved in, and is gone when it is given back", async () => {
    const files = host("container-v2", container);
    await using cgroups = await opened(files);
    const group = await cgroups.create(limits);
    const directory = onlySandboxIn(files, container);
    const child = await goesOn();
    await group.add(child.pid);
    expect(files.processesIn(directory)).toEqual([child.pid]);
    await group[Symbol.asyncDispose]();
    expect(existsSync(join(files.root, directory))).toBe(false);
    expect(child.signalCode ?? (await once(child, "exit"))[1]).toBe("SIGKILL");
  });

  test("tells what was used", async () => {
    const files = host("container-v2", container);
    await using cgroups = await opened(files);
    await using group = await cgroups.create(limits);
    const directory = onlySandboxIn(files, container);
    files.set(join(directory, "cpu.stat"), "usage_usec 1234500\nuser_usec 1\nsystem_usec 2\n");
    files.set(join(directory, "memory.peak"), "268435456\n");
    files.set(join(directory, "pids.peak"), "17\n");
    const events = "low 0\nhigh 0\nmax 12\noom 3\noom_kill 2\noom_group_kill 1\n";
    files.set(join(directory, "memory.events"), events);
    expect(group.read()).toEqual({
      cpuMs: 1234.5,
      peakMemoryBytes: 268435456,
      peakProcesses: 15,
      memoryKills: 2,
    });
  });

  test("tells nothing of what an older kernel does not count, and nothing when it is gone", async () => {
    const files = host("container-v2", container);
    await using cgroups = await opened(files);
    const group = await cgroups.create(limits);
    const directory = onlySandboxIn(files, container);
    const unknown = { peakMemoryBytes: undefined, peakProcesses: undefined };
    const none = { ...unknown, memoryKills: 0 };
    files.set(join(directory, "memory.peak"), "");
    files.set(join(directory, "pids.peak"), "");
    expect(group.read()).toEqual({ ...none, cpuMs: 0 });
    await group[Symbol.asyncDispose]();
    expect(group.read()).toEqual({ ...none, cpuMs: undefined });
  });

  test("kills what is in it, by the kernel or one by one", async () => {
    for (const isByKernel of [true, false]) {
      const files = host("container-v2", container);
      await using cgroups = await opened(files);
      await using group = await cgroups.create(limits);
      if (!isByKernel)
        files.refusals.set(join(onlySandboxIn(files, container), "cgroup.kill"), "ENOENT");
      const children = [await goesOn(), await goesOn()];
      for (const { pid } of children) await group.add(pid);
      const ends = children.map((child) => once(child, "exit"));
      group.kill();
      expect((await Promise.all(ends)).map(([, signal]) => signal as string)).toEqual([
        "SIGKILL",
        "SIGKILL",
      ]);
    }
  });

  test("is not made when a limit cannot be set, and a process cannot be moved to where it is not", async () => {
    const files = host("container-v2", container);
    await using cgroups = await opened(files);
    await using group = await cgroups.create(limits);
    const directory = onlySandboxIn(files, container);
    files.refusals.set(directory, "EPERM");
    await expect(group.add(process.pid)).rejects.toThrow("cannot move a process into");
    files.refusals.set(container, "ENOSPC");
    await expect(cgroups.create(limits)).rejects.toThrow("cannot make a control group");
    files.refusals.clear();
    expect(onlySandboxIn(files, container)).toBe(directory);
  });
});

describe("joining a group", () => {
  /**
   * A host whose clock goes on for pauses and for moves: by `moveMs`, or by next to nothing soon
   * after another move.
   */
  function hostWithClock(
    files: RecordedCgroups,
    moveMs: number,
  ): Pick<Clock, "monotonicMs" | "sleep"> {
    let nowMs = 1000;
    let lastMoveMs = 0;
    const write = files.write.bind(files);
    files.write = (path, text) => {
      write(path, text);
      if (!path.endsWith("cgroup.procs")) return;
      nowMs += nowMs - lastMoveMs < 30 ? 0.04 : moveMs;
      lastMoveMs = nowMs;
    };
    return {
      monotonicMs: () => nowMs,
      sleep: async (ms) => void (nowMs += ms),
    };
  }

  async function openWith(
    files: RecordedCgroups,
    clock: Pick<Clock, "monotonicMs" | "sleep">,
  ): Promise<CgroupsFound> {
    const onRemoveFailed = (error: unknown) => {
      throw error;
    };
    return openCgroups({ clock, newId, onRemoveFailed, files, timesJoin: true });
  }

  const ways = ["mount -o remount,favordynmods /sys/fs/cgroup", "cgroup_favordynmods=true"];

  test.each([
    ["when the worker has stepped aside right before", ""],
    ["when the worker stays where it is", "memory pids\n"],
  ])("that makes calls wait is told of with what spares it, %s", async (_, passedOn) => {
    const files = host("container-v2", container);
    files.set(join(container, "cgroup.subtree_control"), passedOn);
    const found = await openWith(files, hostWithClock(files, 8.4));
    await using cgroups = found.cgroups!;
    expect(cgroups).toMatchObject({ controls: { memory: true, processes: true, cpu: true } });
    expect(cgroups.joinMs).toBeCloseTo(8.4);
    expect(found).toMatchObject({ reason: undefined, remedy: undefined });
    expect(found.remark).toContain("each call waits about 8 ms");
    for (const way of ways) expect(found.remark).toContain(way);
  });

  test("that takes long only once, as on a busy machine, is not told of", async () => {
    const files = host("container-v2", container);
    const clock = hostWithClock(files, 0.1);
    const move = files.move.bind(files);
    files.move = async (path, pid) => {
      await clock.sleep(8);
      files.move = move;
      await move(path, pid);
    };
    const found = await openWith(files, clock);
    await using cgroups = found.cgroups!;
    expect(cgroups.joinMs).toBeCloseTo(0.1);
    expect(found.remark).toBeUndefined();
  });

  test("of several hierarchies of version 1 takes as long as all of them", async () => {
    const files = new RecordedCgroups("container-v1");
    const [memory, time] = ["memory of the container", "cpu,cpuacct"].map((name) =>
      join(container, name),
    ) as [string, string];
    for (const group of [memory, time]) files.lay(group, [], [process.pid]);
    const make = files.make.bind(files);
    files.make = (directory) => {
      make(directory);
      files.set(join(directory, "memory.limit_in_bytes"), "");
    };
    const found = await openWith(files, hostWithClock(files, 5));
    await using cgroups = found.cgroups!;
    expect(cgroups.controls).toEqual({ memory: true, processes: false, cpu: true });
    expect(cgroups.joinMs).toBeCloseTo(5.04);
    expect(found.remark).toContain("each call waits about 5 ms");
    expect([...files.groupsIn(memory), ...files.groupsIn(time)]).toEqual([]);
  });
});

describe("a sandbox's group that cannot be removed", () => {
  async function removeFails(
    code: string,
  ): Promise<{ tookMs: number; failures: readonly unknown[] }> {
    const files = host("container-v2", container);
    const failures: unknown[] = [];
    let nowMs = 0;
    const clock = {
      monotonicMs: () => nowMs,
      sleep: async (ms: number) => void (nowMs += ms),
    };
    const onRemoveFailed = (error: unknown) => void failures.push(error);
    const { cgroups } = await openCgroups({ clock, newId, onRemoveFailed, files });
    const group = await cgroups!.create(limits);
    files.remove = () => {
      throw Object.assign(new Error(code), { code });
    };
    nowMs = 0;
    await group[Symbol.asyncDispose]();
    return { tookMs: nowMs, failures };
  }

  const told = [expect.objectContaining({ message: expect.stringContaining("cannot remove") })];

  test("because something stays in it is told of after ten seconds", async () => {
    const { tookMs, failures } = await removeFails("EBUSY");
    expect(failures).toEqual(told);
    expect(tookMs).toBeGreaterThan(10_000);
    expect(tookMs).toBeLessThan(10_100);
  });

  test("for another reason is told of at once", async () => {
    expect(await removeFails("EPERM")).toEqual({ tookMs: 0, failures: told });
  });

  test("because it is gone is no matter", async () => {
    expect(await removeFails("ENOENT")).toEqual({ tookMs: 0, failures: [] });
  });
});

describe("a worker that may do nothing with control groups", () => {
  const cases: readonly [
    string,
    (files: RecordedCgroups) => void,
    string,
    keyof typeof cgroupRemedies,
  ][] = [
    [
      "because its group is somebody else's",
      (files) => void files.refusals.set(service, "EACCES"),
      `${service} is not this user's`,
      "not-delegated",
    ],
    [
      "because it cannot be written after all",
      (files) => void files.refusals.set(service, "EROFS"),
      `${service} is mounted read-only`,
      "read-only",
    ],
    [
      "because it is not alone in its group",
      (files) => files.lay(service, all, [process.ppid, process.pid]),
      `${service} holds 1 other processes`,
      "not-alone",
    ],
    [
      "because it cannot see who else is in its group",
      (files) => files.lay(service, all, [process.pid, 0]),
      `${service} holds 1 other processes`,
      "not-alone",
    ],
    [
      "because its group has no controllers",
      (files) => files.lay(service, ["hugetlb"], [process.pid]),
      `${service} has no controller memory; ${service} has no controller pids`,
      "no-controllers",
    ],
    [
      "because the kernel refuses for another reason",
      (files) => void files.refusals.set(service, "EOPNOTSUPP"),
      `${service} cannot be used: EOPNOTSUPP`,
      "refused",
    ],
  ];

  test.each(cases)("%s says so, and how to change it", async (_, spoil, reason, code) => {
    const files = host("service-v2", service);
    spoil(files);
    const before = tree(files);
    expect(await open(files)).toEqual({ cgroups: undefined, reason, remedy: cgroupRemedies[code] });
    expect(tree(files)).toEqual(before);
  });

  test("is where it was also when that turns out after it has stepped aside", async () => {
    const files = host("service-v2", service);
    const before = tree(files);
    const write = files.write.bind(files);
    files.write = (path, text) => {
      if (text === "+memory +pids" && files.processesIn(service).length === 0)
        throw Object.assign(new Error("EOPNOTSUPP"), { code: "EOPNOTSUPP" });
      write(path, text);
    };
    expect(await open(files)).toMatchObject({ cgroups: undefined, remedy: cgroupRemedies.refused });
    expect(files.processesIn(service)).toEqual([process.pid]);
    expect(tree(files)).toEqual(before);
  });

  test("because there are none says so", async () => {
    const found = await open(new RecordedCgroups("no-cgroups"));
    expect(found).toMatchObject({ cgroups: undefined, reason: "cgroup v2 is not mounted" });
  });

  test("is as before also when only the trial fails", async () => {
    const files = host("service-v2", service);
    const make = files.make.bind(files);
    // Such as pids.max of a group in which processes of this kind are not bounded.
    files.make = (directory) => {
      make(directory);
      if (directory.includes("str-sandbox-"))
        files.refusals.set(join(directory, "pids.max"), "EINVAL");
    };
    const before = tree(files);
    const { cgroups, reason } = await open(files);
    expect(cgroups).toBeUndefined();
    expect(reason).toContain("EINVAL");
    expect(tree(files)).toEqual(before);
    expect(files.processesIn(service)).toEqual([process.pid]);
  });

  test("in part does without the rest", async () => {
    const files = host("service-v2", service, ["pids"]);
    const { cgroups, reason, remedy } = await open(files);
    await using owned = cgroups!;
    expect(owned.controls).toEqual({ memory: false, processes: true, cpu: true });
    expect(reason).toBe(`${service} has no controller memory`);
    expect(remedy).toBe(cgroupRemedies["no-controllers"]);
    await using group = await owned.create(limits);
    expect(group.read()).toMatchObject({ cpuMs: 0, peakProcesses: 0, peakMemoryBytes: undefined });
  });
});

describe("a group that a worker left behind", () => {
  test("is known by its name when its worker is dead, and a live worker's is not taken for it", async () => {
    const mine = cgroupNames(newId)();
    const child = await goesOn();
    const theirs = mine.replace(`-${process.pid}-`, `-${child.pid}-`);
    expect(isLeftBehind(mine)).toBe(false);
    // The number is in use again: the process was started later than the worker.
    expect(isLeftBehind(theirs)).toBe(true);
    const [, namespace] = /^str-sandbox-(\d+)-/.exec(mine)!;
    expect(isLeftBehind(theirs.replace(namespace!, "1"))).toBe(false);
    const gone = once(child, "exit");
    child.kill("SIGKILL");
    await gone;
    expect(isLeftBehind(theirs)).toBe(true);
    expect(isLeftBehind("str-sandbox-of-somebody")).toBe(false);
  });

  test("is ended and removed by the next worker, and nothing else is", async () => {
    const files = host("container-v2", container);
    files.set(join(container, "cgroup.subtree_control"), "memory pids\n");
    const dead = join(container, cgroupNames(newId)().replace(/-\d+-\d+-(?=\w+$)/, "-4194304-1-"));
    const others = [join(container, cgroupNames(newId)()), join(container, "other")];
    for (const group of [dead, ...others]) files.make(group);
    const child = await goesOn();
    files.write(join(dead, "cgroup.procs"), String(child.pid));
    const ended = once(child, "exit");
    await using _cgroups = await opened(files);
    expect((await ended)[1]).toBe("SIGKILL");
    expect(files.groupsIn(container).toSorted()).toEqual(
      others.map((path) => path.slice(container.length + 1)).toSorted(),
    );
  });
});

describe("version 1", () => {
  test("spells limits and usage in its own way", () => {
    expect(cgroupV1.settings(limits).map(({ file, value }) => `${file} ${value}`)).toEqual([
      "memory.swappiness 0",
      `memory.limit_in_bytes ${limits.memoryBytes}`,
      `memory.memsw.limit_in_bytes ${limits.memoryBytes}`,
      `pids.max ${limits.processes + 2}`,
    ]);
    const texts: Readonly<Record<string, string>> = {
      "cpuacct.usage": "1234500000\n",
      "memory.max_usage_in_bytes": "268435456\n",
      "memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n",
    };
    expect(cgroupV1.usage((_, file) => texts[file])).toEqual({
      cpuMs: 1234.5,
      peakMemoryBytes: 268435456,
      peakProcesses: undefined,
      memoryKills: 2,
    });
  });
});

/** Every path of a tree. */
function tree(files: RecordedCgroups): readonly string[] {
  return readdirSync(files.root, { recursive: true, encoding: "utf8" }).toSorted();
}
