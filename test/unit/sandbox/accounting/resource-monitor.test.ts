/**
 * What counts as usage of a sandbox, and which limit is reported. Real processes stand for
 * sandboxes.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { EventEmitter, once } from "node:events";
import { describe, expect, onTestFinished, test } from "vitest";
import type { LimitReached, Limits } from "../../../../worker/protocol/resource-limits.ts";
import { ResourceMonitor } from "../../../../worker/sandbox/accounting/resource-monitor.ts";
import { sandboxOf, watch } from "./sampled-process.ts";

const MiB = 1024 * 1024;
/** Rounds of samples in which a monitor sees what is already there: a search takes several. */
const manyRounds = 30;

/** A monitor, and a wait for many rounds of samples from now on. */
function newMonitor() {
  let rounds = 0;
  const sampled = new EventEmitter();
  const monitor = new ResourceMonitor(() => sampled.emit("round", ++rounds));
  const hasSampled = async (): Promise<void> => {
    const enough = rounds + manyRounds;
    while (rounds < enough) await once(sampled, "round");
  };
  return { monitor, hasSampled };
}

/**
 * A process that has said, so many times with all that it has started, that it holds what it is to
 * hold.
 */
async function holding(file: string, argv: readonly string[], times = 1): Promise<ChildProcess> {
  // In a group of its own, so that what it starts ends with it.
  const child = spawn(file, argv, { stdio: ["pipe", "pipe", "inherit"], detached: true });
  onTestFinished(() => endGroup(child));
  let text = "";
  child.stdout.setEncoding("utf8").on("data", (chunk: string) => (text += chunk));
  while (text.split("\n").length <= times) await once(child.stdout, "data");
  return child;
}

function endGroup(child: ChildProcess): void {
  try {
    process.kill(-child.pid!, "SIGKILL");
  } catch {
    // The test has ended it.
  }
}

const node = (script: string, times = 1) => holding(process.execPath, ["-e", script], times);
const python = (script: string, times = 1) => holding("/usr/bin/python3", ["-c", script], times);

/** A program that holds so many mebibytes of its own, and goes on. */
const holds = (mebibytes: number): string =>
  `const held = Buffer.alloc(${mebibytes} * 1024 * 1024, 1); console.log("held"); setInterval(() => held, 1e6);`;

/** The exceeded limit, or undefined when many rounds of samples find none. */
async function exceeded(
  child: ChildProcess,
  limits: Partial<Limits>,
): Promise<LimitReached | undefined> {
  const { monitor, hasSampled } = newMonitor();
  const told = Promise.withResolvers<LimitReached>();
  using _watch = watch(monitor, await sandboxOf(child.pid!, limits, told.resolve));
  return await Promise.race([told.promise, hasSampled().then(() => undefined)]);
}

const isBeyond = async (child: ChildProcess, mebibytes: number): Promise<boolean> =>
  (await exceeded(child, { memoryBytes: mebibytes * MiB }))?.limit === "memoryBytes";

describe("the memory of a sandbox", () => {
  test("is that of its process", async () => {
    const child = await node(holds(100));
    expect(await isBeyond(child, 100)).toBe(true);
    expect(await isBeyond(child, 200)).toBe(false);
  });

  test(
    "is that of all processes together, also of those that threads have started",
    { tags: "full" },
    async () => {
      const start = `const { spawn } = require("child_process"); const { Worker } = require("worker_threads");`;
      const program = JSON.stringify(
        `${start} spawn(process.execPath, ["-e", ${JSON.stringify(holds(100))}], { stdio: "inherit" });`,
      );
      const child = await node(
        `${start} spawn(process.execPath, ["-e", ${program}], { stdio: "inherit" });
       new Worker(${program} + " setInterval(() => {}, 1e6)", { eval: true });`,
        2,
      );
      expect(await isBeyond(child, 200)).toBe(true);
      expect(await isBeyond(child, 400)).toBe(false);
    },
  );

  test("is shared memory too, and no file that is mapped", { tags: "full" }, async () => {
    const touch = `
import mmap, sys, tempfile
size = 100 << 20
file = tempfile.TemporaryFile()
file.truncate(size)
held = mmap.mmap(*(%s), size)
for page in range(0, size, 4096): held[page]
%s
print("held", flush=True)
sys.stdin.read()`;
    const write = "for page in range(0, size, 4096): held[page] = 1";
    const shared = await python(touch.replace("%s", "-1,").replace("%s", write));
    expect(await isBeyond(shared, 90)).toBe(true);
    const file = await python(touch.replace("%s", "file.fileno(),").replace("%s", ""));
    expect(await isBeyond(file, 90)).toBe(false);
  });

  test(
    "counts each page once, however many processes share it by a fork or a mapping",
    { tags: "promise-E2" },
    async () => {
      const fork = `
import mmap, os, sys
held = %s
for page in range(0, 60 << 20, 4096): held[page] = 1
for _ in range(4):
    if os.fork() == 0: break
for page in range(0, 60 << 20, 4096): held[page]
os.write(1, b"held\\n")
sys.stdin.read()`;
      for (const held of ["bytearray(60 << 20)", "mmap.mmap(-1, 60 << 20)"]) {
        const child = await python(fork.replace("%s", held), 5);
        expect([held, await isBeyond(child, 120)]).toEqual([held, false]);
        expect([held, await isBeyond(child, 59)]).toEqual([held, true]);
      }
    },
  );

  test("is shared memory that no process shows any more", { tags: "full" }, async () => {
    const child = await python(`
import mmap, os, sys
held = [mmap.mmap(-1, 10 << 20) for _ in range(12)]
for piece in held:
    piece.write(bytes(10 << 20))
    piece.madvise(mmap.MADV_DONTNEED)
print("held", flush=True)
sys.stdin.read()`);
    expect(await isBeyond(child, 110)).toBe(true);
    expect(await isBeyond(child, 140)).toBe(false);
  });

  test("is page tables, which take memory where no page does", async () => {
    const child = await python(`
import mmap, sys
size = 32 << 30
held = mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000)
held.madvise(mmap.MADV_NOHUGEPAGE)
for place in range(0, size, 2 << 20): held[place]
print("held", flush=True)
sys.stdin.read()`);
    expect(await isBeyond(child, 50)).toBe(true);
    expect(await isBeyond(child, 100)).toBe(false);
  });

  test("is nothing when its processes are gone", async () => {
    const child = await node(holds(100));
    child.kill("SIGKILL");
    await once(child, "exit");
    expect(await isBeyond(child, 0)).toBe(false);
  });
});

describe("the processes of a sandbox", () => {
  test("are processes and threads", async () => {
    const child = await python(`
import os, sys, threading
if os.fork() == 0:
    for _ in range(5): threading.Thread(target=sys.stdin.read).start()
    print("started", flush=True)
else:
    sys.stdin.read()`);
    expect(await exceeded(child, { processes: 6 })).toEqual({
      limit: "processes",
      bound: 6,
      peak: 7,
    });
    expect(await exceeded(child, { processes: 7 })).toBeUndefined();
  });
});

describe("the CPU time of a sandbox", () => {
  const spin = `
import os, sys, time
def spin(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end: pass
`;

  test("is that of processes that are gone as well", async () => {
    const child = await python(`${spin}
for _ in range(4):
    if os.fork() == 0:
        spin(0.3)
        os._exit(0)
    os.wait()
print("used", flush=True)
sys.stdin.read()`);
    expect(await exceeded(child, { cpuSeconds: 1 })).toMatchObject({
      limit: "cpuSeconds",
      bound: 1,
      peak: expect.closeTo(1.3, 0) as number,
    });
    expect(await exceeded(child, { cpuSeconds: 3 })).toBeUndefined();
  });

  test("is that of unreaped children, as of their last sample", { tags: "full" }, async () => {
    const child = await python(`${spin}
import signal
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
print("ready", flush=True)
sys.stdin.readline()
for _ in range(3):
    if os.fork() == 0:
        spin(0.5)
        os._exit(0)
    try: os.wait()
    except ChildProcessError: pass
print("used", flush=True)
sys.stdin.read()`);
    const { monitor } = newMonitor();
    const told = Promise.withResolvers<LimitReached>();
    using _watch = watch(monitor, await sandboxOf(child.pid!, { cpuSeconds: 1 }, told.resolve));
    child.stdin!.write("go\n");
    expect(await told.promise).toMatchObject({ limit: "cpuSeconds", bound: 1 });
  });
});

describe("a resource monitor", () => {
  test("reports each sandbox that exceeds its own limit once", async () => {
    const [large, small] = await Promise.all([node(holds(100)), node(holds(1))]);
    const { monitor, hasSampled } = newMonitor();
    const told: string[] = [];
    const watchOf = async (name: string, child: ChildProcess, mebibytes: number) =>
      watch(
        monitor,
        await sandboxOf(child.pid!, { memoryBytes: mebibytes * MiB }, () => void told.push(name)),
      );
    using _small = await watchOf("small", small, 90);
    using _large = await watchOf("large", large, 90);
    using _allowed = await watchOf("allowed", large, 400);
    await hasSampled();
    expect(told).toEqual(["large"]);
    using _later = await watchOf("later", large, 90);
    await hasSampled();
    expect(told).toEqual(["large", "later"]);
  });

  test("sees memory that grows", async () => {
    const child = await holding(process.execPath, [
      "-e",
      `console.log("ready"); process.stdin.once("data", () => { ${holds(100)} });`,
    ]);
    const told = Promise.withResolvers<LimitReached>();
    const { monitor, hasSampled } = newMonitor();
    using watched = watch(
      monitor,
      await sandboxOf(child.pid!, { memoryBytes: 90 * MiB }, told.resolve),
    );
    await hasSampled();
    expect(watched.sampler.usage.peakMemoryBytes).toBeLessThan(90 * MiB);
    child.stdin!.write("grow\n");
    const { peak } = await told.promise;
    expect(watched.sampler.usage.peakMemoryBytes).toBe(peak);
    expect(peak).toBeGreaterThan(90 * MiB);
  });

  test("reports no sandbox that was removed", { tags: "full" }, async () => {
    const child = await node(holds(100));
    const { monitor, hasSampled } = newMonitor();
    const told: string[] = [];
    const watchOf = async (name: string, mebibytes: number) =>
      watch(
        monitor,
        await sandboxOf(child.pid!, { memoryBytes: mebibytes * MiB }, () => void told.push(name)),
      );
    const over = await watchOf("too late", 1);
    // One that goes on, to be sampled.
    using _allowed = await watchOf("allowed", 400);
    over[Symbol.dispose]();
    await hasSampled();
    expect(told).toEqual([]);
  });

  test("leaves to a control group what that bounds and counts", async () => {
    const child = await node(holds(100));
    const { monitor, hasSampled } = newMonitor();
    const told: LimitReached[] = [];
    const wasTold = Promise.withResolvers<void>();
    const sandbox = await sandboxOf(child.pid!, { memoryBytes: MiB, cpuSeconds: 1 }, (limit) => {
      told.push(limit);
      wasTold.resolve();
    });
    let cpuMs = 1_000;
    const group = {
      controls: { memory: true, processes: true, cpu: true },
      read: () => ({
        cpuMs,
        peakMemoryBytes: 0,
        peakProcesses: 0,
        memoryKills: 0,
      }),
    };
    using watched = watch(monitor, { ...sandbox, group });
    await hasSampled();
    expect(told).toEqual([]);
    expect(watched.sampler.usage.peakMemoryBytes).toBeUndefined();
    cpuMs = 1_001;
    await wasTold.promise;
    expect(told).toEqual([{ limit: "cpuSeconds", bound: 1, peak: 1.001 }]);
  });

  test("has no usage of a sandbox that was not sampled", async () => {
    const child = await node(holds(1));
    const { monitor, hasSampled } = newMonitor();
    using watched = watch(monitor, await sandboxOf(child.pid!, {}, () => undefined));
    expect(watched.sampler.usage).toEqual({
      cpuMs: undefined,
      peakMemoryBytes: undefined,
      peakProcesses: undefined,
    });
    await hasSampled();
    expect(watched.sampler.usage.peakProcesses).toBeGreaterThan(1);
    expect(watched.sampler.usage.cpuMs).toBeGreaterThan(0);
  });
});
