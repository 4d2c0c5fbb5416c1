/**
 * Children of a template: a call finds nothing of another one, reaches neither the template nor
 * other children, and is kept as one in a sandbox that was made for it.
 */
import { spawn } from "node:child_process";
import { readdirSync, statSync } from "node:fs";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { type TestContext, beforeEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { isFilteredArch } from "../../worker/sandbox/bubblewrap/seccomp/seccomp.ts";
import {
  inspectedCalls,
  refusedCalls,
  unfitCalls,
  unknownCalls,
} from "../../worker/sandbox/syscalls/syscalls.ts";
import type { ParkedSandbox, Template } from "../../worker/sandbox/sandbox.ts";
import { inheritableDescriptors } from "../../worker/support/inherited-descriptors.ts";
import type { LeftFile } from "../../worker/sandbox/work/work-dir.ts";
import { never } from "../integration/sandbox/sandbox-host.ts";
import { type Draw, type Draws, alike } from "../support/sandboxes/draws.ts";
import { describePerProfile, testPerProfile } from "../support/sandboxes/per-profile.ts";
import { resultTextOf } from "../support/runners/result-text.ts";
import {
  type TemplateHost,
  type TemplateHostOptions,
  isPythonInNode,
  templateHosts,
} from "../support/sandboxes/template-host.ts";

const openTemplateHost = templateHosts();
const fixtures = fileURLToPath(new URL("../fixtures/template/", import.meta.url));
const arch = isFilteredArch(process.arch) ? process.arch : "x64";
const namespaceFlags = {
  mount: 0x0002_0000,
  cgroup: 0x0200_0000,
  uts: 0x0400_0000,
  ipc: 0x0800_0000,
  user: 0x1000_0000,
  pid: 0x2000_0000,
  net: 0x4000_0000,
};

interface Opened {
  readonly host: TemplateHost;
  readonly template: Template;
}

async function open(
  context: TestContext,
  options: Partial<TemplateHostOptions> = {},
): Promise<Opened> {
  const host = await openTemplateHost(context, {
    files: {},
    toolsFrom: fixtures,
    module: "neighbour",
    ...options,
  });
  const template = await host.openTemplate();
  onTestFinished(() => template[Symbol.asyncDispose]());
  return { host, template };
}

beforeEach((context) =>
  context.skip(!isFilteredArch(process.arch), `there are no templates on ${process.arch}`),
);

describePerProfile("a call in a child of a template under %s", (profile) => {
  test(
    "is and has what a call in a sandbox of its own is and has",
    { tags: "promise-W6" },
    async (context) => {
      const { host, template } = await open(context, { profile });
      const { result } = await host.call<Look>(template, "look");
      const cold = (await host.call<Look>(undefined, "look")).result;
      const { [templateDir]: cover, ...mounts } = result.mounts;
      // What hides the template's directory; nothing fits into it.
      expect(cover).toEqual(["ro,nosuid,nodev,noexec,relatime", "tmpfs"]);
      // The wake channel, which no program inherits that a child becomes.
      const others = isPythonInNode() ? [] : ["socket"];
      const descriptors = [...ownDescriptors(cold), ...others].toSorted();
      expect({ ...result, mounts: points(mounts), descriptors: ownDescriptors(result) }).toEqual({
        ...cold,
        mounts: points(cold.mounts),
        descriptors,
      });
      expect(result.status).toMatchObject({ CapBnd: "0000000000000000", Seccomp: "2" });
    },
  );

  test(
    "finds nothing of what earlier calls have left wherever they can",
    { tags: "promise-W2" },
    async (context) => {
      const { host, template } = await open(context, { profile });
      // It was there before they ran.
      await using waiting = await template.park(never);
      for (let count = 1; count <= 5; count++) {
        const left = await host.call<object>(template, "leave", { count });
        const { result } = await host.call<object>(undefined, "leave", { count });
        expect(left).toMatchObject({ result, error: undefined });
        const places = expect.arrayContaining(["/tmp", "/dev/shm", "/sandbox/work"]);
        expect(left).toMatchObject({ result: { written: places } });
      }
      expect(await host.call(template, "find")).toMatchObject(nothingFound);
      const report = await (await host.wake(waiting, "find")).exited;
      expect(report).toMatchObject({ exitCode: 0 });
      const text = await resultTextOf(waiting, report);
      expect(JSON.parse(text!)).toMatchObject({ result: { found: [] } });
    },
  );

  test(
    "reaches neither the template nor other children",
    { tags: "promise-W3" },
    async (context) => {
      const { host, template } = await open(context, { profile });
      await using other = await template.park(never);
      const name = basename(other.workDir.path);
      expect((await host.call(template, "attack", { name })).result).toEqual({
        "the template's directory": [],
        "to make a file there": "EROFS",
        "another's work directory": "ENOENT",
        "the same by the first process": "ENOENT",
        "the same by its directory": "ENOENT",
        "the socket": "ENOENT",
        "what the first process has open": ["socket"],
        "to open that": ["ENXIO"],
        "to take that": "EPERM",
        "to unmount": "EPERM",
        "to mount": "EPERM",
        "a user namespace": "EPERM",
        "its namespaces of old": "EPERM",
        "more namespaces": "EROFS",
        "to change what runs": "EROFS",
        "to write to what runs": expect.stringMatching(/^(EACCES|EROFS)$/),
        "to trace": "EPERM",
        "other processes": ["1", "its own"],
        "children of the first": ["its own"],
        "parent of the first": "0",
        "pids beyond": [],
      });
      expect(await isAsGoodAsNew(host, template)).toBe(true);
    },
  );
});

testPerProfile(
  "a call in a child under %s is refused every system call of the list",
  async (profile, context) => {
    const { host, template } = await open(context, {
      profile,
      toolsFrom: fileURLToPath(new URL("../fixtures/tools/", import.meta.url)),
      module: "system_calls",
    });
    const numbers = { ...refusedCalls, ...unknownCalls, ...unfitCalls };
    const calls = Object.fromEntries(
      Object.entries(numbers).flatMap(([name, { [arch]: number }]) =>
        number === undefined ? [] : [[name, number]],
      ),
    );
    const { result } = await host.call<Record<string, string>>(template, "makes", { calls });
    expect(Object.keys(result).toSorted()).toEqual(Object.keys(calls).toSorted());
    // What each of them comes to without a filter is told in system-calls.test.ts.
    const outcome = (name: string): string =>
      name in refusedCalls ? "EPERM" : name in unknownCalls ? "ENOSYS" : "EINVAL";
    expect(result).toEqual(
      Object.fromEntries(Object.keys(calls).map((name) => [name, outcome(name)])),
    );
    const number = inspectedCalls.clone[arch];
    const cloned = await host.call<object>(template, "clones", { number, flags: namespaceFlags });
    expect(Object.values(cloned.result)).toEqual(Object.keys(namespaceFlags).map(() => "EPERM"));
  },
);

describe("a template", () => {
  const attackRounds = async (context: TestContext, rounds: number): Promise<void> => {
    const { host, template } = await open(context, { profile: "permissive" });
    const first = (await host.call<Look>(template, "look")).result;
    const attacks = [
      ["leave", { count: 1 }],
      ["attack", { name: "x" }],
      ["write_first", { pattern: "neighbour" }],
      ["kill_all", {}],
      ["kill_group", {}],
      ["take", { what: "processes" }],
    ] as const;
    for (let round = 0; round < rounds; round++)
      for (const [name, args] of attacks) await host.call(template, name, args);
    expect((await host.call<Look>(template, "look")).result).toEqual(first);
    expect(await host.call(template, "find")).toMatchObject(nothingFound);
  };
  test("makes children as good as its first one after 6 calls that attack it", (context) =>
    attackRounds(context, 1));
  test(
    "makes children as good as its first one after 60 calls that attack it",
    { tags: ["full", "promise-W2"] },
    (context) => attackRounds(context, 10),
  );

  test(
    "and its other children live on when a call kills all that it can",
    { tags: "promise-W3" },
    async (context) => {
      const { host, template } = await open(context);
      await using other = await template.park(never);
      const killer = await host.call(template, "kill_all");
      expect(killer).toMatchObject({ report: { exitCode: 0 }, result: { alive: true } });
      const { report } = await host.call(template, "kill_group");
      expect(report).toMatchObject({ signal: "SIGKILL" });
      const execution = await host.wake(other, "find");
      expect(await execution.exited).toMatchObject({ exitCode: 0 });
      expect(await host.call(template, "find")).toMatchObject(nothingFound);
    },
  );

  test(
    "has no first process that a call could overwrite",
    { tags: "promise-W3" },
    async (context) => {
      const { host, template } = await open(context);
      const { result } = await host.call(template, "write_first", { pattern: "neighbour" });
      expect(result).toEqual({ changed: 0, error: expect.stringContaining("Read-only") });
      expect(await host.call(template, "find")).toMatchObject(nothingFound);
    },
  );

  const pretences = async (context: TestContext, times: number): Promise<void> => {
    const { host, template } = await open(context);
    for (let count = 0; count < times; count++) {
      await using parked = await template.park(never);
      const execution = await host.wake(parked, "pretend_done");
      expect(await execution.exited).toMatchObject({ started: true });
      const written = bytesIn(parked);
      // Some milliseconds pass.
      await parked.workDir.leftOutputs(30).then(({ files }) => closeAll(files));
      expect(bytesIn(parked)).toBe(written);
    }
    expect(await host.call(template, "find")).toMatchObject(nothingFound);
  };
  test("ends a child whole that says it had ended, and goes on", (context) =>
    pretences(context, 2));
  test("ends every child whole, when ten say that they had ended", { tags: "full" }, (context) =>
    pretences(context, 10),
  );

  test(
    "has the worker signal nobody else, whatever its module has said of its children",
    { tags: "promise-W4" },
    async (context) => {
      context.skip(isPythonInNode(), "the module that lies is Python's");
      const foreign = spawn("/usr/bin/sleep", ["100"]);
      onTestFinished(() => void foreign.kill("SIGKILL"));
      const ends = vi.fn<() => void>();
      foreign.once("exit", ends);
      const files = { "tool.py": lyingModule(foreign.pid!) };
      const host = await openTemplateHost(context, { files });
      await using template = await host.openTemplate();
      for (let count = 0; count < 3; count++)
        expect(await host.call(template, "run")).toMatchObject({ report: { exitCode: 0 } });
      expect(ends).not.toHaveBeenCalled();
      expect(foreign.kill(0)).toBe(true);
    },
  );

  test("shares no terminals among its children", async (context) => {
    context.skip(isPythonInNode(), "the module has no context to send a status by");
    const { host, template } = await open(context, { profile: "permissive" });
    await using parked = await template.park(never);
    const waits = Promise.withResolvers<string>();
    using _statuses = parked.workDir.readStatuses(waits.resolve);
    await host.wake(parked, "wait");
    await waits.promise;
    expect((await host.call(template, "terminals")).result).toEqual({ terminals: ["0", "ptmx"] });
  });

  const draws = async (context: TestContext, rounds: number): Promise<void> => {
    context.skip(
      isPythonInNode(),
      "Python starts anew; Node's generators have a test of their own",
    );
    const { host, template } = await open(context, { module: "generators" });
    const drawn: Draw[] = [];
    for (let round = 0; round < rounds; round++) {
      const calls = Array.from({ length: 5 }, () => host.call<Draws>(template, "tell"));
      const results = (await Promise.all(calls)).map(({ result }) => result);
      if (round === 0) drawn.push(results[0]!.imported);
      drawn.push(...results.map((each) => each.drawn));
    }
    expect(drawn).toHaveLength(5 * rounds + 1);
    expect(alike(drawn)).toEqual({});
  };
  test("has no two of 10 children draw alike from any generator that its import has drawn from", (context) =>
    draws(context, 2));
  test(
    "has no two of 50 children draw alike from any generator that its import has drawn from",
    { tags: ["full", "promise-W1"] },
    (context) => draws(context, 10),
  );
});

describe.each([
  ["with control groups, where there are some", false],
  ["without control groups", true],
])("a limit %s", (_groups, withoutCgroups) => {
  const MiB = 1024 * 1024;
  const isUsual = (what: string) => what === (withoutCgroups ? "memory" : "processes");
  const limits = [
    ["memory", { memoryBytes: 96 * MiB }, { exceeded: { limit: "memoryBytes" } }],
    ["time", { cpuSeconds: 1 }, { exceeded: { limit: "cpuSeconds" } }],
    ["disk", { diskBytes: 8 * MiB }, { exceeded: { limit: "diskBytes" } }],
    ["processes", { processes: 12 }, { exitCode: 0, exceeded: undefined }],
  ] as const;
  const isOfOneChild = async (
    [what, ofChild, expected]: (typeof limits)[number],
    context: TestContext,
  ): Promise<void> => {
    const { host, template } = await open(context, { limits: ofChild, withoutCgroups });
    await using neighbour = await template.park(never);
    const { report, error } = await host.call(template, "take", { what });
    expect(report).toMatchObject(expected);
    if (what === "processes") expect(error).toMatch(/ (\d+) and EAGAIN$/);
    expect(await (await host.wake(neighbour, "find")).exited).toMatchObject({ exitCode: 0 });
    expect(await host.call(template, "find")).toMatchObject(nothingFound);
  };
  const title = "of %s is that of one child, and ends no other";
  test.for(limits.filter(([what]) => isUsual(what)))(title, isOfOneChild);
  test.for(limits.filter(([what]) => !isUsual(what)))(title, { tags: "full" }, isOfOneChild);
});

const nothingFound = { result: { found: [] }, error: undefined };
const templateDir = "/sandbox/template";

interface Look {
  readonly descriptors: Readonly<Record<string, string>>;
  readonly mounts: Readonly<Record<string, readonly [options: string, type: string]>>;
  readonly status: Readonly<Record<string, string>>;
}

/**
 * What is mounted where and how; the order of options and how a private mount came about are no
 * difference.
 */
function points(mounts: Look["mounts"]): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(mounts).map(([point, [options, type]]) => [
      point,
      { type, options: options.split(",").toSorted() },
    ]),
  );
}

/** What is in output/, at once. */
function bytesIn({ workDir }: ParkedSandbox): number {
  const output = join(workDir.path, "output");
  return readdirSync(output).reduce((sum, name) => sum + statSync(join(output, name)).size, 0);
}

async function closeAll(files: readonly LeftFile[]): Promise<void> {
  for (const { handle } of files) await handle.close();
}

/**
 * A module that makes the children of its template itself, in place of the native part: each names
 * another process as its own, and ends as a call would.
 */
function lyingModule(pid: number): string {
  return `
import ctypes, os, socket
make_native = ctypes.PyDLL
clone = 56 if os.uname().machine == "x86_64" else 220

class Child:
    def __call__(self, word, *others):
        first = make_native(None).syscall(clone, ${namespaceFlags.user | namespaceFlags.pid} | 17, 0, 0, 0, 0)
        if first != 0:
            return first
        report, wake, out, err = (connected(word, role) for role in (b"report", b"wake", b"out", b"err"))
        report.sendall(b'{"child-pid": ${pid}}\\n')
        report.recv(16)
        wake.sendall(b'{"ready": true}\\n')
        wake.recv(65536)
        report.sendall(b'{"exit-code": 0}\\n')
        os._exit(0)

def connected(word, role):
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.connect("/sandbox/template/socket")
    connection.sendall(word + b" " + role + b"\\n")
    return connection

class Native:
    def __init__(self, *where, **how):
        self.own, self.child = make_native(*where, **how), Child()
    def __getattr__(self, name):
        return getattr(self.own, name)

ctypes.PyDLL = Native
def run():
    return {}
`;
}

/** Without what the test runner itself has inherited, which is closed by worker/main.ts alone. */
function ownDescriptors({ descriptors }: Look): readonly string[] {
  const inherited = inheritableDescriptors();
  const own = Object.entries(descriptors).filter(([name]) => !inherited.includes(Number(name)));
  return own.map(([, target]) => target).toSorted();
}

async function isAsGoodAsNew(host: TemplateHost, template: Template): Promise<boolean> {
  const { result } = await host.call<{ found: string[] }>(template, "find");
  return result.found.length === 0;
}
