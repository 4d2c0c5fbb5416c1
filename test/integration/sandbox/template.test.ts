/**
 * Templates and their children, with the real Python runner: made, woken, lost, given back, and
 * refused.
 */
import { once } from "node:events";
import { readdir } from "node:fs/promises";
import { createConnection } from "node:net";
import { dirname } from "node:path";
import { type TestContext, beforeEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { isFilteredArch } from "../../../worker/sandbox/bubblewrap/seccomp/seccomp.ts";
import {
  TemplateListener,
  maxArriving,
} from "../../../worker/sandbox/bubblewrap/template/template-listener.ts";
import { signalQuietly } from "../../../worker/sandbox/proc/processes.ts";
import { SandboxError, type Template } from "../../../worker/sandbox/sandbox.ts";
import { newId } from "../../../worker/support/ids.ts";
import { patience } from "../../support/patience.ts";
import { type TemplateHostOptions, templateHosts } from "../../support/sandboxes/template-host.ts";
import {
  never,
  openDescriptors,
  processesIn,
  processesWith,
  temporaryDirectory,
  uniqueSleep,
} from "./sandbox-host.ts";

const openTemplateHost = templateHosts();
const MiB = 1024 * 1024;
/** SCHED_BATCH of sched(7). */
const batchPolicy = 3;
/** Kilobytes of the first process's memory and of the runner's, and how the first is scheduled. */
interface FirstProcess {
  readonly first: number;
  readonly own: number;
  readonly policy: number;
}
const working =
  "loads = []\nloads.append(1)\ndef run():\n    loads.append(2)\n    return {'loads': loads}\n";

const openHost = (
  context: TestContext,
  source: string,
  options: Partial<TemplateHostOptions> = {},
) => openTemplateHost(context, { files: { "tool.py": source }, ...options });

async function open(
  context: TestContext,
  source: string,
  options: Partial<TemplateHostOptions> = {},
) {
  const host = await openHost(context, source, options);
  const template = await host.openTemplate();
  onTestFinished(() => template[Symbol.asyncDispose]());
  return { host, template };
}

beforeEach((context) =>
  context.skip(!isFilteredArch(process.arch), `there are no templates on ${process.arch}`),
);

describe("a template", () => {
  test("loads its module once, and each child answers one call as if it had loaded it", async (context) => {
    const { host, template } = await open(context, working);
    expect(template.privateBytes).toBeGreaterThan(MiB);
    for (let count = 0; count < 3; count++) {
      const answer = await host.call(template, "run");
      expect(answer).toMatchObject({
        report: { started: true, exitCode: 0, exceeded: undefined },
        result: { loads: [1, 2] },
      });
      // Where nobody has looked in so short a time, and no control group counts, nobody knows.
      expect([1, undefined]).toContain(answer.report.usage.peakProcesses);
    }
  });

  test("makes children that are small, also more than one of them may have processes", async (context) => {
    const { host, template } = await open(context, working, { limits: { processes: 4 } });
    const parked = await Promise.all(Array.from({ length: 5 }, () => template.park(never)));
    await using held = new AsyncDisposableStack();
    for (const each of parked) held.use(each);
    expect(new Set(parked.map(({ workDir }) => workDir.path)).size).toBe(5);
    for (const each of parked) {
      expect(each.privateBytes).toBeGreaterThan(0);
      expect(each.privateBytes).toBeLessThan(8 * MiB);
      expect(await (await host.wake(each, "run")).exited).toMatchObject({ exitCode: 0 });
    }
  });

  test("has children wait in an event loop before their calls, where functions of its module do", async (context) => {
    const source = `
import asyncio, resource
def pages():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
def run():
    before = pages()
    asyncio.run(asyncio.sleep(0))
    return {"copied": pages() - before, "isRehearsed": hasattr(asyncio, "Runner")}
`;
    const copied = async (functions: string): Promise<number> => {
      const { host, template } = await open(context, source + functions);
      type Copied = { readonly copied: number; readonly isRehearsed: boolean };
      const { result } = await host.call<Copied>(template, "run");
      context.skip(!result.isRehearsed, "Python before 3.11 has no runner of event loops");
      return result.copied;
    };
    const inCall = await copied("");
    const waiting = "async def waits(*_):\n    pass\n";
    expect(await copied(waiting)).toBeLessThan(inCall / 2);
    expect(await copied(`class Tool:\n    ${waiting.replace("\n", "\n    ")}`)).toBeLessThan(
      inCall / 2,
    );
  });

  const looks = `
import asyncio, logging, os, signal
logging.basicConfig(level=logging.DEBUG)
def kind(descriptor):
    try:
        return os.readlink(f"/proc/self/fd/{descriptor}").partition(":")[0]
    except OSError:
        return "gone"
def state():
    handlers = {number: str(signal.getsignal(number)) for number in range(1, 65)}
    return {"handlers": handlers, "open": sorted(map(kind, os.listdir("/proc/self/fd")))}
def run():
    try:
        loop = type(asyncio.get_event_loop()).__name__
    except RuntimeError as error:
        loop = str(error)
    return {**state(), "loop": loop}
`;
  const awaits = "async def awaits():\n    return {'name': asyncio.current_task().get_name()}\n";

  test("leaves its children nothing of how they waited before their calls", async (context) => {
    const { host, template } = await open(context, looks + awaits);
    for (const name of ["run", "awaits"]) {
      const [child, alone] = [await host.call(template, name), await host.call(undefined, name)];
      // The ends of their channels are of other kinds.
      const { open: _inChild, ...others } = child.result as Record<string, unknown>;
      const { open: _inAlone, ...othersAlone } = alone.result as Record<string, unknown>;
      expect(others).toEqual(othersAlone);
      expect(child.report.stderr).toEqual(alone.report.stderr);
    }
    const { host: other, template: without } = await open(context, looks);
    const [child, plain] = [await host.call(template, "run"), await other.call(without, "run")];
    expect(child.result).toEqual(plain.result);
  });

  test.for([
    ["has no runner of event loops", "import asyncio\nasyncio.Runner = None\n"],
    [
      "has an object with a class that raises",
      "class Lazy:\n    __class__ = property(lambda self: 1 / 0)\nlazy = Lazy()\n",
    ],
  ])("serves a module that %s", async ([, source], context) => {
    const { host, template } = await open(context, source + looks + awaits);
    expect(await host.call(template, "awaits")).toMatchObject({ report: { exitCode: 0 } });
  });

  test("has its children's first processes give back its memory, and interrupt nobody", async (context) => {
    const source = `
import os, time
held = os.urandom(32 << 20)
def kilobytes(process):
    lines = open(f"/proc/{process}/status").read().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("RssAnon"))
def run():
    end = time.monotonic() + 10
    while kilobytes(1) >= 4096 and time.monotonic() < end:
        time.sleep(0.001)
    policy = int(open("/proc/1/stat").read().rpartition(")")[2].split()[38])
    return {"first": kilobytes(1), "own": kilobytes("self"), "held": len(held), "policy": policy}
`;
    const { host, template } = await open(context, source);
    const { result } = await host.call<FirstProcess>(template, "run");
    expect(result.own).toBeGreaterThan(32 * 1024);
    expect(result.first).toBeLessThan(4096);
    expect(result.policy).toBe(batchPolicy);
  });

  test.for([
    ["has put at 0", "os.dup2(held, 0)\nos.close(held)\nplace = lambda: 0"],
    [
      "opens when it is flushed",
      "os.close(held)\nclass Lazy:\n    def flush(self):\n        if not hasattr(self, 'held'):\n            self.held = unnamed()\nsys.stdout = Lazy()\nplace = lambda: sys.stdout.held",
    ],
  ])(
    "shares nothing among its children that its module %s",
    { tags: "promise-W2" },
    async ([, held], context) => {
      const { host, template } = await open(
        context,
        `
import os, sys
def unnamed():
    file = os.open("/tmp/held", os.O_RDWR | os.O_CREAT)
    os.unlink("/tmp/held")
    return file
held = unnamed()
${held}
def run(text):
    try:
        found = os.pread(place(), 100, 0).decode()
        os.pwrite(place(), text.encode(), 0)
    except OSError:
        found = ""
    return {"found": found}
`,
      );
      for (const text of ["secret of the first", "secret of the second"])
        expect((await host.call(template, "run", { text })).result).toEqual({ found: "" });
    },
  );

  test("has huge pages for what its import left, where the kernel makes them", async (context) => {
    const read = `
def huge():
    lines = open("/proc/self/smaps_rollup").read().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("AnonHugePages"))
`;
    const { host, template } = await open(
      context,
      `${read}
import ctypes, mmap
held = [[number] for number in range(200_000)]
private = mmap.mmap(-1, 4 << 20, flags=mmap.MAP_PRIVATE)
for at in range(0, 4 << 20, 4096):
    private[at] = 1
address = ctypes.addressof(ctypes.c_char.from_buffer(private)) + (2 << 20) - 1 & -(2 << 20)
makes = ctypes.CDLL(None).madvise(ctypes.c_void_p(address), ctypes.c_size_t(2 << 20), 25) == 0
before = huge()
def run():
    return {"makes": makes, "more": huge() - before}
`,
    );
    const { result } = await host.call<{ makes: boolean; more: number }>(template, "run");
    context.skip(!result.makes, "the kernel makes no huge pages when it is asked");
    expect(result.more).toBeGreaterThan(0);
  });

  test.for([
    ["four", 8, 4],
    ["no more than have room in its control group", 2, 1],
  ] as const)("makes several children at a time: %s", async ([, processes, most], context) => {
    const { host, template } = await open(context, working, { limits: { processes } });
    let present = 0;
    const counts: number[] = [];
    const original = TemplateListener.prototype.expect;
    const spy = vi.spyOn(TemplateListener.prototype, "expect").mockImplementation(function (
      this: TemplateListener,
      ...args
    ) {
      const expected = original.apply(this, args);
      counts.push(++present);
      const end = expected[Symbol.dispose].bind(expected);
      return Object.assign(expected, {
        [Symbol.dispose]: () => {
          present--;
          end();
        },
      });
    });
    onTestFinished(() => spy.mockRestore());
    const parked = await Promise.all(Array.from({ length: 6 }, () => template.park(never)));
    await using held = new AsyncDisposableStack();
    for (const each of parked) held.use(each);
    expect(Math.max(...counts)).toBe(most);
    for (const each of parked)
      expect(await (await host.wake(each, "run")).exited).toMatchObject({ exitCode: 0 });
  });

  test.for([
    ["a status that it exits with", "import os\ndef run():\n    os._exit(7)\n", { exitCode: 7 }],
    ["the same, said otherwise", "import sys\ndef run():\n    sys.exit(3)\n", { exitCode: 3 }],
    [
      "a signal",
      "import os\ndef run():\n    os.kill(os.getpid(), 9)\n",
      { exitCode: undefined, signal: "SIGKILL" },
    ],
  ] as const)("tells how a child's command ended: %s", async ([, source, end], context) => {
    const { host, template } = await open(context, source);
    expect((await host.call(template, "run")).report).toMatchObject({ started: true, ...end });
  });

  test("runs exit handlers, threads and what a file holds back to their ends", async (context) => {
    const { host, template } = await open(
      context,
      `
import atexit, threading, time
files = []
def run():
    files.append(open("output/file", "w"))
    files[0].write("written")
    atexit.register(lambda: open("output/handler", "w").write("run"))
    threading.Thread(target=lambda: (time.sleep(0.1), open("output/thread", "w").write("run"))).start()
    return {}
`,
    );
    await using parked = await template.park(never);
    expect(await (await host.wake(parked, "run")).exited).toMatchObject({ exitCode: 0 });
    const { files } = await parked.workDir.leftOutputs(10);
    const texts = await Promise.all(
      files.map(async ({ name, handle }) => [name, await handle.readFile("utf8")]),
    );
    for (const { handle } of files) await handle.close();
    expect(texts).toEqual([
      ["file", "written"],
      ["handler", "run"],
      ["thread", "run"],
    ]);
  });

  test("ends a child without finalizing what libraries and modules hold", async (context) => {
    const source = `
import sys
class WantsToKnow:
    def __del__(self, print=print):
        print("told")
imported = WantsToKnow()
sys.modules["other"] = type(sys)("other")
sys.modules["other"].__file__ = "/other.so"
def run():
    global made
    made = WantsToKnow()
    return {}
`;
    const { host, template } = await open(context, source);
    const { report } = await host.call(template, "run");
    expect(report).toMatchObject({ exitCode: 0, stdout: { text: "" }, stderr: { text: "" } });
  });

  test("runs what its module wants run at a fork in the runner of a child, and nowhere else", async (context) => {
    const source =
      "import os\nran = []\n" +
      "os.register_at_fork(before=lambda: ran.append(('before', os.getpid())),\n" +
      "    after_in_parent=lambda: open('output/parent', 'w').close(),\n" +
      "    after_in_child=lambda: ran.append(('after', os.getpid())))\n" +
      "def run():\n    return {'ran': ran, 'pid': os.getpid(), 'outputs': os.listdir('output')}\n";
    const { host, template } = await open(context, source);
    const { result } = await host.call<{ readonly pid: number }>(template, "run");
    const { pid } = result;
    const ran = [
      ["before", pid],
      ["after", pid],
    ];
    expect(result).toEqual({ ran, pid, outputs: [] });
  });

  const leaving = [
    ["its child", (command: string) => `${command} &`],
    ["a child of nobody", (command: string) => `(setsid ${command} &) &`],
  ] as const;

  async function endsAll(
    context: TestContext,
    start: (command: string) => string,
    calls: number,
  ): Promise<void> {
    const { marker, command } = uniqueSleep();
    const source = `import os\ndef run():\n    os.system('${start(command)}')\n    return {}\n`;
    const { host, template } = await open(context, source);
    for (let count = 0; count < calls; count++) {
      await using parked = await template.park(never);
      const { exitCode } = await (await host.wake(parked, "run")).exited;
      expect(await processesWith(marker)).toEqual([]);
      expect(exitCode).toBe(0);
    }
  }

  test.for(leaving)(
    "has nothing of a call run any more when its end is told: %s",
    { tags: "promise-E5" },
    ([, start], context) => endsAll(context, start, 2),
  );
  test.for(leaving)(
    "has nothing of 10 calls run any more when their ends are told: %s",
    { tags: "full" },
    ([, start], context) => endsAll(context, start, 10),
  );

  test(
    "leaves no process of calls that ended together, where no control group ends them",
    { tags: "full" },
    async (context) => {
      const { host, template } = await open(context, working, { withoutCgroups: true });
      for (let round = 0; round < 5; round++) {
        const parked = await Promise.all(Array.from({ length: 6 }, () => template.park(never)));
        await using held = new AsyncDisposableStack();
        for (const each of parked) held.use(each);
        const woken = await Promise.all(parked.map((each) => host.wake(each, "run")));
        await Promise.all(woken.map(({ exited }) => exited));
        for (const { workDir } of parked)
          await vi.waitFor(
            async () => expect(await processesIn(workDir.path)).toEqual([]),
            patience,
          );
      }
    },
  );

  const changes = [
    ["has no flush", "class Out:\n    def write(self, text): pass\nsys.stdout = Out()\n"],
    ["is closed", "sys.stdout.close()\n"],
    ["has no descriptor, nor has stderr", "import os\nos.close(1)\nos.close(2)\n"],
    ["cannot be flushed", "def fail(): raise ValueError('no')\nsys.stdout.flush = fail\n"],
  ] as const;

  async function isServed([, change]: (typeof changes)[number], context: TestContext) {
    const source = `import sys\n${change}def run():\n    return {'answered': True}\n`;
    const { host, template } = await open(context, source);
    expect((await host.call(template, "run")).result).toEqual({ answered: true });
  }
  test.for(changes.slice(0, 1))("serves a module whose stdout %s", isServed);
  test.for(changes.slice(1))("serves a module whose stdout %s", { tags: "full" }, isServed);

  test("has what its module starts at a fork block no signals", async (context) => {
    const starting =
      "import os, subprocess\nsaid = []\n" +
      "def start(): said.append(subprocess.check_output(['grep', 'SigBlk', '/proc/self/status'], text=True))\n" +
      "os.register_at_fork(after_in_child=start)\n" +
      "def run():\n    return {'blocked': said[0].split()[1]}\n";
    const { host, template } = await open(context, starting);
    expect((await host.call(template, "run")).result).toEqual({ blocked: "0".repeat(16) });
  });

  test("has its children block the signals that its module blocks, and no others", async (context) => {
    const blocking =
      "import signal\nsignal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})\n" +
      "def run():\n    return {'blocked': sorted(signal.pthread_sigmask(signal.SIG_BLOCK, ()))}\n";
    const { host, template } = await open(context, blocking);
    expect((await host.call(template, "run")).result).toEqual({ blocked: [2] });
  });

  test("keeps what a child prints, to its last word", async (context) => {
    const source =
      "import sys\ndef run():\n    print('x' * 100_000)\n    print('end', file=sys.stderr)\n    return {}\n";
    const { host, template } = await open(context, source);
    const { report } = await host.call(template, "run");
    expect(report.stdout.text.endsWith("xxx\n")).toBe(true);
    expect(report.stdout.droppedBytes + report.stdout.text.length).toBe(100_001);
    expect(report.stderr.text).toBe("end\n");
  });

  const unfit = [
    [
      "a thread",
      "import threading, time\nthreading.Thread(target=time.sleep, args=(99,), daemon=True).start()",
      "threads",
    ],
    ["a timer", "import signal\nsignal.alarm(3600)", "set a timer"],
    ["an open file", "file = open('/usr/bin/env')", "/usr/bin/env open"],
    ["a socket", "import socket\npair = socket.socketpair()", "socket:"],
    ["an event loop", "import asyncio\nloop = asyncio.new_event_loop()", "open"],
    ["shared memory", "import mmap\nshared = mmap.mmap(-1, 4096)", "shares"],
    [
      "shared memory that is read-only so far",
      "import mmap\nshared = mmap.mmap(-1, 4096)\nimport ctypes\naddress = ctypes.addressof(ctypes.c_char.from_buffer(shared))\nctypes.CDLL(None).mprotect(ctypes.c_void_p(address), 4096, 1)",
      "shares",
    ],
    [
      "a lock of multiprocessing",
      "import multiprocessing\nlock = multiprocessing.Lock()",
      "shares",
    ],
    ["a process", "import subprocess\nsubprocess.Popen(['/usr/bin/sleep', '99'])", "processes"],
    ["a file in /tmp", "open('/tmp/cache', 'w').close()", "/tmp/cache"],
    [
      "a file in its work directory",
      "open('output/x', 'w').close()\nopen('x', 'w').close()",
      "/sandbox/work/x",
    ],
    [
      "a generator that cannot be seeded anew",
      "import random\nclass Own(random.Random):\n    def random(self): return 0.5\nown = Own()",
      "tool.Own is a generator of an unknown kind",
    ],
    [
      "a library with such a generator",
      "import sys, types\nsys.modules['torch'] = types.ModuleType('torch')",
      "torch has a generator",
    ],
    ["an error", "import nothing_of_that_name", "ModuleNotFoundError"],
  ] as const;

  async function isRefused([, source, reason]: (typeof unfit)[number], context: TestContext) {
    const host = await openHost(context, `${source}\n${working}`);
    const refused = await host.openTemplate().catch((error: unknown) => error);
    expect(refused).toBeInstanceOf(SandboxError);
    expect(refused).toMatchObject({ isUnfit: true, message: expect.stringContaining(reason) });
  }
  const usual: readonly string[] = ["a timer", "an open file", "shared memory", "an error"];
  test.for(unfit.filter(([what]) => usual.includes(what)))(
    "is refused for good to a module whose import leaves %s",
    isRefused,
  );
  test.for(unfit.filter(([what]) => !usual.includes(what)))(
    "is refused for good to a module whose import leaves %s",
    { tags: "full" },
    isRefused,
  );

  test(
    "is not there when its import takes more than its profile allows, and may be tried again",
    { tags: "full" },
    async (context) => {
      const source = "import os\nheld = [os.fork() for _ in range(4)]\nwhile True:\n    pass\n";
      const host = await openHost(context, source, { limits: { cpuSeconds: 1 } });
      const refused = await host.openTemplate().catch((error: unknown) => error);
      expect(refused).toMatchObject({
        isUnfit: false,
        message: expect.stringContaining("cpuSeconds"),
      });
    },
  );

  test("whose import never ends is ended when nobody wants it any more", async (context) => {
    const module = `endless_${newId()}`;
    const files = { [`${module}.py`]: "import time\ntime.sleep(86400)\n" };
    const host = await openTemplateHost(context, { files, module });
    const giveUp = new AbortController();
    const opening = host.openTemplate(giveUp.signal);
    await vi.waitFor(async () => expect(await processesWith(module)).not.toEqual([]), patience);
    giveUp.abort(new Error("nobody wants it"));
    await expect(opening).rejects.toThrow("nobody wants it");
    expect(await processesWith(module)).toEqual([]);
  });

  test("gives no process id twice: when it has given out all, it makes no more, and its children go on", async (context) => {
    const source = `
import builtins, io, os
real = builtins.open
def few(path, *more, **named):
    return io.StringIO("5") if path == "/proc/sys/kernel/pid_max" else real(path, *more, **named)
builtins.open = few
def run():
    return {"pid": os.getpid()}
`;
    const { host, template } = await open(context, source);
    expect((await host.call(template, "run")).result).toEqual({ pid: 3 });
    await using last = await template.park(never);
    await expect(template.park(never)).rejects.toThrow("given out all process ids");
    expect(await (await host.wake(last, "run")).exited).toMatchObject({ exitCode: 0 });
  });

  test("that is lost takes its children along, says so, and makes no more", async (context) => {
    const { host, template } = await open(context, working);
    await using parked = await template.park(never);
    for (const pid of await processesIn(dirname(parked.workDir.path)))
      signalQuietly(pid, "SIGKILL");
    await template.lost;
    await parked.lost;
    await expect(host.wake(parked, "run")).rejects.toThrow(SandboxError);
    await expect(template.park(never)).rejects.toThrow("a template has ended");
  });

  test("that is given back leaves no process, no descriptor and no directory, with children or without", async (context) => {
    const host = await openHost(context, working);
    await (await host.openTemplate())[Symbol.asyncDispose]();
    const before = await openDescriptors();
    let place = "";
    for (let count = 0; count < 3; count++) {
      await using template: Template = await host.openTemplate();
      await using used = await template.park(never);
      await using _unused = await template.park(never);
      place = dirname(used.workDir.path);
      await (
        await host.wake(used, "run")
      ).exited;
    }
    await vi.waitFor(async () => {
      expect(await openDescriptors()).toBeLessThanOrEqual(before);
      await expect(readdir(place)).rejects.toThrow("ENOENT");
    }, patience);
    expect(await processesIn(place)).toEqual([]);
  });
});

describe("the socket for children of a template", () => {
  test("lets nobody in who does not know a word, or who says nothing that is one", async () => {
    const directory = await temporaryDirectory();
    await using listener = await TemplateListener.open(directory, undefined);
    using expected = listener.expect("word", false);
    for (const greeting of ["other report\n", "word shell\n", "x".repeat(100), "\n"]) {
      const socket = await connect(directory);
      socket.write(greeting);
      await once(socket, "close");
    }
    const sockets = [];
    for (const role of ["report", "wake", "out", "err"]) {
      const socket = await connect(directory);
      socket.write(`word ${role}\n`);
      sockets.push(socket);
    }
    await expected.connected;
    const connected = expected.take();
    expect(Object.keys(connected)).toHaveLength(4);
    for (const socket of [...sockets, ...Object.values(connected)]) socket.destroy();
  });

  test("hears all connections of as many children as may come at a time", async () => {
    const directory = await temporaryDirectory();
    await using listener = await TemplateListener.open(directory, undefined);
    const words = Array.from({ length: maxArriving }, (_, index) => `word${index}`);
    const roles = ["report", "wake", "out", "err", "gateway"];
    const greetings = words.flatMap((word) => roles.map((role) => `${word} ${role}\n`));
    await using held = new AsyncDisposableStack();
    const children = words.map((word) => held.use(listener.expect(word, true)));
    const sockets = await Promise.all(greetings.map(() => connect(directory)));
    for (const socket of sockets) held.defer(() => void socket.destroy());
    // Whoever came before the next one has been let in when that is turned away.
    const stranger = await connect(directory);
    stranger.write("other report\n");
    await once(stranger, "close");
    for (const [index, socket] of sockets.entries()) socket.write(greetings[index]!);
    await Promise.all(children.map(({ connected }) => connected));
  });

  test.for([
    ["once, from a child that has one", true],
    ["never, from any other", false],
  ] as const)("accepts a gateway %s", async ([, hasGateway]) => {
    const directory = await temporaryDirectory();
    await using listener = await TemplateListener.open(directory, undefined);
    using expected = listener.expect("word", hasGateway);
    const greet = async (role: string) => {
      const socket = await connect(directory);
      socket.write(`word ${role}\n`);
      return socket;
    };
    const roles = ["report", "wake", "out", ...(hasGateway ? ["gateway"] : []), "err"];
    const accepted = [];
    for (const role of roles) {
      if (role === "err") await once(await greet("gateway"), "close");
      accepted.push(await greet(role));
    }
    await expected.connected;
    const connected = expected.take();
    for (const socket of [...accepted, ...Object.values(connected)]) socket.destroy();
    expect(Object.keys(connected).sort()).toEqual(roles.sort());
  });
});

async function connect(directory: string) {
  const socket = createConnection(`${directory}/socket`);
  socket.on("error", () => undefined).resume();
  await once(socket, "connect");
  return socket;
}
