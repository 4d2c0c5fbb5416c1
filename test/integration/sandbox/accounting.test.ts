/**
 * What a sandbox may use in all its processes together: each limit ends it, and is named, with
 * control groups and with the resource monitor. And usage is reported.
 */
import { type TestContext, describe, expect, test } from "vitest";
import type { Limits } from "../../../worker/protocol/resource-limits.ts";
import type { BubblewrapBackend } from "../../../worker/sandbox/bubblewrap/backend.ts";
import { maxDepth } from "../../../worker/sandbox/accounting/tree-walk.ts";
import { sampleMs } from "../../../worker/sandbox/accounting/resource-monitor.ts";
import { restrictiveProfile } from "../../../worker/sandbox/profile.ts";
import type { ExitReport, MemoryBound } from "../../../worker/sandbox/sandbox.ts";
import { never, processesWith, request, sharedBackends } from "./sandbox-host.ts";

const MiB = 1024 * 1024;

const open = sharedBackends();

/** What every program here begins with; each ends with saying that nothing has ended it. */
const prelude = `
import ctypes, mmap, os, signal, sys, threading, time
linger = ${(50 * sampleMs) / 1000}
def in_processes(count, work):
    for number in range(count):
        if os.fork() == 0:
            work(number)
            time.sleep(linger)
            os._exit(0)
    for _ in range(count): os.wait()
def fill(path, mebibytes):
    with open(path, "wb", buffering=0) as file:
        for _ in range(mebibytes): file.write(bytes(1 << 20))
def spin(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end: pass
`;

/** Runs a Python program in a sandbox of its own. */
async function run(
  backend: BubblewrapBackend,
  program: string,
  changes: { limits?: Partial<Limits>; memoryBound?: MemoryBound } = {},
): Promise<ExitReport> {
  const { limits = {}, memoryBound = "resident" } = changes;
  const profile = { ...restrictiveProfile, limits: { ...restrictiveProfile.limits, ...limits } };
  await using sandbox = await backend.acquire(request({ profile, memoryBound }), never);
  const argv = ["/usr/bin/python3", "-c", `${prelude}${program}\nprint("went on")`];
  return await (
    await sandbox.start({ argv })
  ).exited;
}

/**
 * Runs a program that is to be ended: on a busy machine, too, it has not gone on when the worker
 * comes to look.
 */
function runBeyond(...[backend, program, changes]: Parameters<typeof run>): Promise<ExitReport> {
  return run(backend, `linger = 30\n${program}`, changes);
}

const endedFor = (limit: string, bound: number) => ({
  started: true,
  exitCode: undefined,
  signal: "SIGKILL",
  exceeded: { limit, bound },
  stdout: { text: "" },
});
const wentOn = { started: true, exitCode: 0, exceeded: undefined, stdout: { text: "went on\n" } };

/** How a process keeps a file that has no name any more, and what it does for that. */
const waysToHold = [
  ["open", ""],
  ["mapped", "library.mmap(None, 30 << 20, 1, 1, file, 0); os.close(file)"],
] as const;

/** Enough for an interpreter, and little to fill. */
const little = { memoryBytes: 128 * MiB };

/** Makes so many empty files in four processes. */
const makesFiles = (count: number, directory: string): string => `
def make(number):
    for index in range(${count} // 4): open("${directory}/%d-%d" % (number, index), "w").close()
in_processes(4, make)`;

describe.each([
  ["control groups keep", true],
  ["the resource monitor keeps", false],
])("where %s the bounds, a sandbox", (_, byGroup) => {
  async function backendFor(context: TestContext): Promise<BubblewrapBackend> {
    const backend = await open(context, !byGroup);
    const { enforcement } = backend.facts(restrictiveProfile);
    const missing = byGroup && enforcement.memoryBytes !== "kernel";
    context.skip(missing, "this host gives no control group with memory");
    return backend;
  }

  describe("is ended, with all its processes, when", () => {
    test(
      "one or several of them together hold too much memory",
      { tags: "promise-E1" },
      async (context) => {
        const backend = await backendFor(context);
        for (const hold of [
          `held = b"x" * (180 << 20)`,
          `in_processes(4, lambda number: held.append(b"x" * (45 << 20)))`,
        ]) {
          const program = `marker, held = "str-accounting-memory", []\n${hold}\ntime.sleep(linger)`;
          const report = await runBeyond(backend, program, { limits: little });
          expect(report).toMatchObject(endedFor("memoryBytes", little.memoryBytes));
          expect(report.usage.peakMemoryBytes).toBeGreaterThanOrEqual(little.memoryBytes * 0.95);
          expect(await processesWith("str-accounting-memory")).toEqual([]);
        }
      },
    );

    test(
      "they hold too much memory, and their first threads have ended",
      { tags: "promise-E1" },
      async (context) => {
        const backend = await backendFor(context);
        const program = `
held = []
def hold():
    held.append(b"x" * (45 << 20))
    time.sleep(linger)
def leave(number):
    threading.Thread(target=hold).start()
    exit_thread = {"x86_64": 60, "aarch64": 93}[os.uname().machine]
    ctypes.CDLL(None).syscall(exit_thread, 0)
in_processes(4, leave)`;
        expect(await runBeyond(backend, program, { limits: little })).toMatchObject(
          endedFor("memoryBytes", little.memoryBytes),
        );
      },
    );

    test("they keep memory that is on no process's account", async (context) => {
      const backend = await backendFor(context);
      const program = `
def hold(number):
    held = mmap.mmap(-1, 40 << 20)
    held.write(bytes(40 << 20))
    held.madvise(mmap.MADV_DONTNEED)
    if os.fork() > 0: os._exit(0)
    time.sleep(linger)
in_processes(4, hold)
time.sleep(linger)`;
      expect(await runBeyond(backend, program, { limits: little })).toMatchObject(
        endedFor("memoryBytes", little.memoryBytes),
      );
    });

    test("memory and tmpfs files are too much together", async (context) => {
      const backend = await backendFor(context);
      const limits = { memoryBytes: 128 * MiB, fileSizeBytes: 128 * MiB };
      const program = `
for place in ("/tmp/file", "/dev/shm/file"): fill(place, 50)
held = b"x" * (60 << 20)
time.sleep(linger)`;
      expect(await runBeyond(backend, program, { limits })).toMatchObject(
        endedFor("memoryBytes", limits.memoryBytes),
      );
    });

    test(
      "they use too much processor time together",
      { tags: ["full", "promise-E1"] },
      async (context) => {
        const backend = await backendFor(context);
        const report = await runBeyond(backend, "in_processes(3, lambda number: spin(1))", {
          limits: { cpuSeconds: 2 },
        });
        expect(report).toMatchObject(endedFor("cpuSeconds", 2));
        expect(report.exceeded!.peak).toBeGreaterThan(2);
      },
    );

    test("one of them uses up its own", async (context) => {
      const backend = await backendFor(context);
      const report = await runBeyond(backend, "spin(60)", { limits: { cpuSeconds: 1 } });
      // The kernel's signal or the resource monitor, whichever comes first.
      const signal = expect.stringMatching(/^SIG(KILL|XCPU)$/) as string;
      expect(report).toMatchObject({ ...endedFor("cpuSeconds", 1), signal });
    });

    test("they put too much into the work directory, in files that are each allowed", async (context) => {
      const backend = await backendFor(context);
      const program = `in_processes(4, lambda number: fill("output/%d" % number, 30))`;
      expect(await runBeyond(backend, program, { limits: { diskBytes: 64 * MiB } })).toMatchObject(
        endedFor("diskBytes", 64 * MiB),
      );
    });

    test.for(waysToHold)(
      "they put too much into files without a name, %s",
      { tags: "promise-E1" },
      async ([, then], context) => {
        const backend = await backendFor(context);
        const program = `
library = ctypes.CDLL(None)
library.mmap.restype = ctypes.c_void_p
library.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
def hold(number):
    file = os.open("file%d" % number, os.O_RDWR | os.O_CREAT)
    os.unlink("file%d" % number)
    for _ in range(30): os.write(file, bytes(1 << 20))
    ${then}
in_processes(4, hold)`;
        expect(
          await runBeyond(backend, program, { limits: { diskBytes: 64 * MiB } }),
        ).toMatchObject(endedFor("diskBytes", 64 * MiB));
      },
    );

    test.for(["output", "/tmp", "/dev/shm"])(
      "they make too many files in %s, though nothing is in them",
      { tags: "promise-E1" },
      async (directory, context) => {
        const backend = await backendFor(context);
        const limits = { files: 1_000 };
        expect(await runBeyond(backend, makesFiles(4_000, directory), { limits })).toMatchObject(
          endedFor("files", 1_000),
        );
      },
    );

    test("they make directories in each other without end", async (context) => {
      const backend = await backendFor(context);
      const program = `
for _ in range(${2 * maxDepth}):
    os.mkdir("deeper")
    os.chdir("deeper")
time.sleep(linger)`;
      expect(await runBeyond(backend, program)).toMatchObject(
        endedFor("files", restrictiveProfile.limits.files),
      );
    });
  });

  test("is ended by the kernel when it writes a file that is too large, and says so", async (context) => {
    const backend = await backendFor(context);
    const program = `
signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
fill("file", 2)`;
    const limits = { fileSizeBytes: MiB };
    expect(await run(backend, program, { limits })).toMatchObject({
      signal: "SIGXFSZ",
      exceeded: { limit: "fileSizeBytes", bound: MiB, peak: undefined },
    });
  });

  describe("goes on when", () => {
    test("it uses of everything nearly what it may", { tags: "full" }, async (context) => {
      const backend = await backendFor(context);
      const limits = {
        memoryBytes: 256 * MiB,
        diskBytes: 64 * MiB,
        files: 1_000,
        cpuSeconds: 3,
      };
      const program = `
in_processes(4, lambda number: fill("output/%d" % number, 12))
${makesFiles(900, "output")}
in_processes(2, lambda number: spin(0.5))
def hold(number):
    held = b"x" * (40 << 20)
    time.sleep(${(10 * sampleMs) / 1000})
in_processes(4, hold)`;
      expect(await run(backend, program, { limits })).toMatchObject(wentOn);
    });

    test(
      "processes share what they were forked with",
      { tags: ["full", "promise-E2"] },
      async (context) => {
        const backend = await backendFor(context);
        const program = `
held = b"x" * (75 << 20)
in_processes(6, lambda number: held[number << 20])`;
        const report = await run(backend, program, { limits: little });
        expect(report).toMatchObject(wentOn);
        expect(report.usage.peakMemoryBytes).toBeLessThan(little.memoryBytes);
      },
    );

    test(
      "it maps shared memory again and again, and as much of its own after that",
      { tags: "full" },
      async (context) => {
        const backend = await backendFor(context);
        const limits = { memoryBytes: 128 * MiB };
        const program = `
for _ in range(4):
    shared = mmap.mmap(-1, 70 << 20)
    shared.write(bytes(70 << 20))
    shared.close()
    own = b"x" * (70 << 20)
    del own`;
        expect(await run(backend, program, { limits })).toMatchObject(wentOn);
      },
    );

    test("processes map the same shared memory", async (context) => {
      const backend = await backendFor(context);
      const limits = { memoryBytes: 120 * MiB };
      const program = `
file = os.open("/dev/shm/shared", os.O_RDWR | os.O_CREAT)
os.truncate(file, 60 << 20)
shared = mmap.mmap(file, 60 << 20)
for page in range(0, 60 << 20, 4096): shared[page] = 1
def read(number):
    for page in range(0, 60 << 20, 4096): shared[page]
in_processes(10, read)`;
      const report = await run(backend, program, { limits });
      expect(report).toMatchObject(wentOn);
      expect(report.usage.peakMemoryBytes).toBeLessThan(limits.memoryBytes);
    });

    test("it maps tmpfs files, which count once", { tags: "full" }, async (context) => {
      const backend = await backendFor(context);
      const limits = { memoryBytes: 256 * MiB, fileSizeBytes: 256 * MiB, tmpBytes: 256 * MiB };
      const program = `
fill("/tmp/library", 150)
file = os.open("/tmp/library", os.O_RDONLY)
mapped = mmap.mmap(file, 150 << 20, mmap.MAP_PRIVATE, mmap.PROT_READ)
for page in range(0, 150 << 20, 4096): mapped[page]
time.sleep(${(20 * sampleMs) / 1000})`;
      expect(await run(backend, program, { limits })).toMatchObject(wentOn);
    });

    test(
      "it makes and removes more than it may have at once",
      { tags: "full" },
      async (context) => {
        const backend = await backendFor(context);
        const program = `
for _ in range(5):
    fill("file", 40)
    os.unlink("file")
    for index in range(300): open("many%d" % index, "w").close()
    for index in range(300): os.unlink("many%d" % index)`;
        const limits = { diskBytes: 64 * MiB, files: 1_000 };
        expect(await run(backend, program, { limits })).toMatchObject(wentOn);
      },
    );
  });

  test("says what it used", async (context) => {
    const backend = await backendFor(context);
    const program = `
def work(number):
    held = b"x" * (60 << 20)
    threads = [threading.Thread(target=time.sleep, args=(1,)) for _ in range(2)]
    for thread in threads: thread.start()
    spin(0.3)
in_processes(3, work)`;
    const { exitCode, usage } = await run(backend, program);
    expect(exitCode).toBe(0);
    // Three times 0.3 seconds, and what starting and filling memory takes.
    expect(usage.cpuMs).toBeGreaterThanOrEqual(890);
    expect(usage.cpuMs).toBeLessThan(3_000);
    expect(usage.wallMs).toBeGreaterThan(1_000);
    expect(usage.peakMemoryBytes).toBeGreaterThan(180 * MiB);
    expect(usage.peakMemoryBytes).toBeLessThan(300 * MiB);
    // The command, and three processes of three threads.
    expect(usage.peakProcesses).toBe(10);
  });

  test("says who keeps what", async (context) => {
    const backend = await backendFor(context);
    await using sandbox = await backend.acquire(request(), never);
    expect(sandbox.enforcement).toMatchObject({
      memoryBytes: byGroup ? "kernel" : "guard",
      cpuSeconds: "guard",
      processes: "kernel",
      openFiles: "kernel",
      fileSizeBytes: "kernel",
      tmpBytes: "kernel",
      diskBytes: "guard",
      files: "guard",
      statusBytes: "guard",
    });
    expect(sandbox.enforcement).toEqual(backend.facts(restrictiveProfile).enforcement);
    expect(sandbox.unenforced).not.toContain("resident-memory");
  });

  test("of a Python tool is bounded in address space besides: the kernel refuses each process more", async (context) => {
    const backend = await backendFor(context);
    const memoryBound = "address-space";
    expect(await run(backend, "held = bytes(600 << 20)", { memoryBound })).toMatchObject({
      exitCode: 1,
      exceeded: undefined,
      stderr: { text: expect.stringContaining("MemoryError") as unknown },
    });
  });

  test("stays on its CPUs, whatever it asks for", { tags: "promise-S15" }, async (context) => {
    const backend = await backendFor(context);
    const { enforcement } = backend.facts(restrictiveProfile);
    context.skip(enforcement.cpus !== "kernel", "there is no filter on this architecture");
    const program = `
before = os.sched_getaffinity(0)
assert len(before) == 1, before
try: os.sched_setaffinity(0, range(os.cpu_count()))
except PermissionError: pass
assert os.sched_getaffinity(0) == before`;
    expect(await run(backend, program)).toMatchObject(wentOn);
  });
});

// Version 1 of control groups does not count it.
test(
  "a sandbox is ended when the kernel holds too much to know of its mappings, without a control group",
  { tags: "full" },
  async (context) => {
    const backend = await open(context, true);
    const limits = { memoryBytes: 150 * MiB };
    const program = `
library = ctypes.CDLL(None)
library.mmap.restype = ctypes.c_void_p
library.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]
library.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
def divide(number):
    area = library.mmap(None, 60000 * 4096, 0, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0)
    for page in range(0, 60000, 2): library.mprotect(area + page * 4096, 4096, 1)
    time.sleep(linger)
in_processes(8, divide)`;
    expect(await runBeyond(backend, program, { limits })).toMatchObject(
      endedFor("memoryBytes", limits.memoryBytes),
    );
  },
);
