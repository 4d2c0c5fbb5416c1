/**
 * Sandboxes' groups on this host's kernel: what is bounded, what is told, and what is left.
 */
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { type TestContext, describe, expect, test, vi } from "vitest";
import { cgroupV2 } from "../../../../worker/sandbox/cgroup/dialect.ts";
import { CgroupFiles } from "../../../../worker/sandbox/cgroup/files.ts";
import { CgroupOfSandbox } from "../../../../worker/sandbox/cgroup/group.ts";
import { restrictiveProfile } from "../../../../worker/sandbox/profile.ts";
import { systemClock } from "../../../../worker/support/clock.ts";
import {
  freshGroups,
  groupsOf,
  has,
  leftBelow,
  passOnForTest,
  requireCgroups,
  requireRootOfV2,
  runWorker,
  startIn,
  startWorker,
} from "./cgroup-host.ts";
import type { CgroupWorkerRan, CgroupWorkerTask } from "./cgroup-worker.ts";
import { requireOtherUser } from "../sandbox-host.ts";

const MiB = 1024 * 1024;
const patience = { timeout: 20_000, interval: 20 };
const otherUser = 60_001;

/**
 * Without the caller's PYTHONUNBUFFERED, which has `print` write twice: the second time to a worker
 * that is dead.
 */
const python = (script: string, ...words: readonly string[]): readonly string[] => [
  "/usr/bin/python3",
  "-I",
  "-c",
  script,
  ...words,
];

/** Runs a command in a group of this host, and requires that nothing is left of it. */
async function runInGroup(context: TestContext, task: CgroupWorkerTask): Promise<CgroupWorkerRan> {
  const groups = await freshGroups(requireCgroups(context));
  const { found, ran, left } = await runWorker(task, { groups });
  expect(found.joinMs).toBeGreaterThan(0);
  expect(found).toMatchObject({ controls: { memory: true, processes: true, cpu: true } });
  expect(left.removeFailures).toEqual([]);
  expect(await leftBelow(groups)).toEqual([]);
  return ran!;
}

/**
 * Takes so many mebibytes in each of so many processes, and says so when they all have. The first
 * one ends with any other, as a tool whose helper is killed may or may not do.
 */
const allocate = `
import os, signal, sys
processes, mebibytes = int(sys.argv[1]), int(sys.argv[2])
signal.signal(signal.SIGCHLD, lambda *_: os._exit(3))
ready, told = os.pipe()
for _ in range(processes - 1):
    if os.fork() == 0:
        held = b"x" * (mebibytes << 20)
        os.write(told, b"!")
        signal.pause()
held = b"x" * (mebibytes << 20)
for _ in range(processes - 1):
    os.read(ready, 1)
print("held", flush=True)
`;

/** Takes memory that no process has mapped. */
const allocateFile = `
import os, sys
file = os.memfd_create("held")
for _ in range(int(sys.argv[1])):
    os.write(file, bytes(1 << 20))
print("held", flush=True)
`;

/** Has as many children as it may, and says how many. */
const fork = `
import os, signal
children = 0
try:
    while children < 200:
        if os.fork() == 0:
            signal.pause()
        children += 1
except BlockingIOError:
    pass
print(children, flush=True)
`;

/** Uses the processor for so many seconds in each of two processes. */
const burn = `
import os, sys, time
child = os.fork()
while time.process_time() < float(sys.argv[1]):
    pass
if child == 0:
    os._exit(0)
os.waitpid(child, 0)
`;

/** Has a child and a grandchild that do not end when they are asked to. */
const stay = `
import os, signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
if os.fork() == 0:
    os.setsid(), os.fork()
else:
    print("here", flush=True)
while True:
    signal.pause()
`;

describe("a sandbox's group", () => {
  test("bounds the memory of all processes together", async (context) => {
    const memoryBytes = 128 * MiB;
    const beyond = await runInGroup(context, { memoryBytes, command: python(allocate, "4", "50") });
    expect(beyond.stdout).toBe("");
    expect(beyond.usage.memoryKills).toBeGreaterThan(0);
    expect(beyond.usage.peakMemoryBytes).toBeGreaterThan(0.9 * memoryBytes);
    expect(beyond.usage.peakMemoryBytes).toBeLessThanOrEqual(memoryBytes);
  });

  test(
    "lets processes hold less memory together, and reports the most they held",
    { tags: "full" },
    async (context) => {
      const within = await runInGroup(context, {
        memoryBytes: 256 * MiB,
        command: python(allocate, "4", "40"),
      });
      expect(within).toMatchObject({ stdout: "held\n", usage: { memoryKills: 0 } });
      expect(within.usage.peakMemoryBytes).toBeGreaterThan(160 * MiB);
      expect(within.usage.peakMemoryBytes).toBeLessThan(256 * MiB);
    },
  );

  test(
    "bounds files in memory as well, which no process has mapped",
    { tags: "full" },
    async (context) => {
      const memoryBytes = 64 * MiB;
      const ran = await runInGroup(context, { memoryBytes, command: python(allocateFile, "100") });
      expect(ran).toMatchObject({ stdout: "", signal: "SIGKILL" });
      expect(ran.usage.memoryKills).toBeGreaterThan(0);
    },
  );

  test("bounds processes, beside bubblewrap's own two", async (context) => {
    const ran = await runInGroup(context, { processes: 10, command: python(fork) });
    expect(ran.stdout).toBe("11\n");
    // Kernels before 6.6 do not tell.
    if (ran.usage.peakProcesses !== undefined) expect(ran.usage.peakProcesses).toBe(10);
  });

  test("counts the processor time of all processes, those that are gone included", async (context) => {
    const ran = await runInGroup(context, { command: python(burn, "0.3") });
    expect(ran.usage.cpuMs).toBeGreaterThan(580);
    expect(ran.usage.cpuMs).toBeLessThan(5000);
  });

  test.for(["kill", "dispose"] as const)(
    "ends every process in it when it is told to %s",
    async (then, context) => {
      const ran = await runInGroup(context, { command: python(stay), then });
      // The end of its output, too: nobody has it open any more.
      expect(ran).toMatchObject({ signal: "SIGKILL" });
    },
  );

  test("of a worker that was killed is ended and removed by the next one", async (context) => {
    const groups = await freshGroups(requireCgroups(context));
    const { child, lines } = await startWorker(
      { command: python(stay), then: "wait-for-ever" },
      { groups },
    );
    const [, line] = [await lines.next(), await lines.next()];
    const { pid } = JSON.parse(line.value as string) as CgroupWorkerRan;
    const gone = once(child, "exit");
    child.kill("SIGKILL");
    await gone;
    expect(await leftBelow(groups)).not.toEqual([]);
    expect(await groupsOf(pid)).toContain("str-sandbox-");
    await runWorker({}, { groups });
    await vi.waitFor(() => expect(() => process.kill(pid, 0)).toThrow("ESRCH"), patience);
    expect((await leftBelow(groups)).filter((name) => name !== "str-worker")).toEqual([]);
  });
});

describe("a worker without privileges", () => {
  test("may use groups that its user owns", { tags: "full" }, async (context) => {
    requireOtherUser(context);
    const groups = await freshGroups(requireCgroups(context), otherUser);
    const { found, ran, left } = await runWorker(
      { memoryBytes: 64 * MiB, command: python(allocate, "2", "50") },
      { groups, uid: otherUser },
    );
    expect(found).toMatchObject({ controls: { memory: true, processes: true, cpu: true } });
    expect(ran).toMatchObject({ stdout: "" });
    expect(ran!.usage.memoryKills).toBeGreaterThan(0);
    expect(left.removeFailures).toEqual([]);
    expect(await leftBelow(groups)).toEqual([]);
  });

  test("may do nothing with those of others, and says so", async (context) => {
    requireOtherUser(context);
    const groups = await freshGroups(requireCgroups(context));
    const { found } = await runWorker({}, { groups, uid: otherUser });
    expect(found.version).toBeUndefined();
    for (const group of groups) expect(found.reason).toContain(`${group} is not this user's`);
  });
});

describe("a worker for which groups are mounted read-only", () => {
  test("may do nothing with them, and says so", async (context) => {
    const parents = requireCgroups(context);
    context.skip(!(await has("unshare")), "needs unshare(1)");
    const groups = await freshGroups(parents);
    const remounts = parents.map((parent) => {
      const mountPoint = parent
        .split("/")
        .slice(0, parents.length > 1 ? 5 : 4)
        .join("/");
      return `mount -o remount,bind,ro ${mountPoint}`;
    });
    const { found } = await runWorker({}, { groups, mounts: remounts.join(" && ") });
    expect(found.version).toBeUndefined();
    for (const group of groups) expect(found.reason).toContain(`${group} is mounted read-only`);
  });
});

/**
 * Has its group pass a controller on, and says where it and its child are before, meanwhile and
 * after.
 */
const stepAside = `
  import { spawn } from "node:child_process";
  import { once } from "node:events";
  import { readFileSync } from "node:fs";
  const { passOn } = await import("${moduleOf("cgroup/delegation")}");
  const { CgroupFiles } = await import("${moduleOf("cgroup/files")}");
  const [directory, controller] = process.argv.slice(1);
  const child = spawn("/bin/cat", { stdio: ["pipe", "ignore", "inherit"] });
  await once(child, "spawn");
  const say = () => console.log(JSON.stringify({
    groups: [process.pid, child.pid].map((pid) => /^0::(.*)$/m.exec(readFileSync("/proc/" + pid + "/cgroup", "utf8"))[1]),
    passedOn: readFileSync(directory + "/cgroup.subtree_control", "utf8").trim(),
  }));
  say();
  try {
    const passed = passOn(new CgroupFiles(), directory, [controller]);
    say();
    passed[Symbol.dispose]();
  } catch (error) {
    console.log(JSON.stringify(error.code));
  }
  say();
  child.stdin.end();
`;

describe("a group of version 2", () => {
  async function stepIn(context: TestContext, isAlone: boolean): Promise<readonly unknown[]> {
    const { root, controller } = requireRootOfV2(context);
    await passOnForTest(root, controller);
    const groups = await freshGroups([root]);
    const directory = groups[0]!;
    if (!isAlone) await startIn(["/bin/sleep", "1000"], { groups });
    const argv = [process.execPath, "--input-type=module", "-e", stepAside, directory, controller];
    const child = await startIn(argv, { groups });
    const told: unknown[] = [];
    for await (const line of createInterface({ input: child.stdout! })) {
      const text = line.replaceAll(directory.slice(root.length), "G").replaceAll(controller, "C");
      told.push(JSON.parse(text));
    }
    expect(await leftBelow(groups)).toEqual([]);
    return told;
  }

  const before = { groups: ["G", "G"], passedOn: "" };

  test("passes controllers on when its only processes have stepped aside, who come back", async (context) => {
    const meanwhile = { groups: ["G/str-worker", "G/str-worker"], passedOn: "C" };
    expect(await stepIn(context, true)).toEqual([before, meanwhile, before]);
  });

  test("is left alone when others are in it", async (context) => {
    expect(await stepIn(context, false)).toEqual([before, "not-alone", before]);
  });

  test("counts processor time and is killed at once, whatever its controllers", async (context) => {
    const { root } = requireRootOfV2(context);
    const [directory = ""] = await freshGroups([root]);
    const makings = {
      files: new CgroupFiles(),
      dialect: cgroupV2,
      parents: [{ directory, controls: ["cpu"] as const }],
      clock: systemClock,
      onRemoveFailed(error: unknown) {
        throw error;
      },
    };
    await using group = CgroupOfSandbox.make(makings, "str-sandbox", restrictiveProfile.limits);
    const child = await startIn(python(`${burn}\nprint("burnt", flush=True)\n${stay}`, "0.2"), {
      groups: [join(directory, "str-sandbox")],
    });
    await once(child.stdout!, "data");
    expect(group.read().cpuMs).toBeGreaterThan(380);
    const ended = once(child.stdout!, "close");
    group.kill();
    await ended;
    await vi.waitFor(
      () => expect(makings.files.processesIn(join(directory, "str-sandbox"))).toEqual([]),
      patience,
    );
  });
});

function moduleOf(name: string): string {
  return new URL(`../../../../worker/sandbox/${name}.ts`, import.meta.url).href;
}
