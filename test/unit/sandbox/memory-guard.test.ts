/**
 * What counts as held by a sandbox, and who is told when it is too much. Real processes stand for sandboxes.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { EventEmitter, once } from "node:events";
import { describe, expect, onTestFinished, test } from "vitest";
import { PollingMemoryGuard, canWatchMemory } from "../../../worker/sandbox/memory-guard.ts";

const MiB = 1024 * 1024;
/** Looks that a guard gets to see something that is already there. */
const manyLooks = 3;

/** A guard, and a wait until it has looked so often from now on. */
function newGuard() {
  let looks = 0;
  const looked = new EventEmitter();
  const guard = new PollingMemoryGuard(() => looked.emit("look", ++looks));
  const hasLooked = async (): Promise<void> => {
    const enough = looks + manyLooks;
    while (looks < enough) await once(looked, "look");
  };
  return { guard, hasLooked };
}

/** A process that has said that it holds what it is to hold. */
async function holding(file: string, argv: readonly string[]): Promise<ChildProcess> {
  // In a group of its own, so that what it starts ends with it.
  const child = spawn(file, argv, { stdio: ["pipe", "pipe", "inherit"], detached: true });
  onTestFinished(() => endGroup(child));
  await once(child.stdout, "data");
  return child;
}

function endGroup(child: ChildProcess): void {
  try {
    process.kill(-child.pid!, "SIGKILL");
  } catch {
    // The test has ended it.
  }
}

const node = (script: string) => holding(process.execPath, ["-e", script]);
const python = (script: string) => holding("/usr/bin/python3", ["-c", script]);

/** A program that holds so many mebibytes of its own, and goes on. */
const holds = (mebibytes: number): string =>
  `const held = Buffer.alloc(${mebibytes} * 1024 * 1024, 1); console.log("held"); setInterval(() => held, 1e6);`;

/** Whether a guard finds that a process and what descends from it hold more than so many mebibytes. */
async function isBeyond(child: ChildProcess, mebibytes: number): Promise<boolean> {
  const { guard, hasLooked } = newGuard();
  const told = Promise.withResolvers<true>();
  using _watch = guard.watch({
    firstPid: child.pid!,
    limitBytes: mebibytes * MiB,
    onExceeded: () => told.resolve(true),
  });
  return await Promise.race([told.promise, hasLooked().then(() => false)]);
}

test("this host shows what a guard looks at", async () => {
  expect(await canWatchMemory()).toBe(true);
});

describe("what a sandbox holds", () => {
  test("is the memory of its process", async () => {
    const child = await node(holds(100));
    expect(await isBeyond(child, 100)).toBe(true);
    expect(await isBeyond(child, 200)).toBe(false);
  });

  test("is that of all processes together, also of those that threads have started", async () => {
    const start = `const { spawn } = require("child_process"); const { Worker } = require("worker_threads");`;
    const program = JSON.stringify(
      `${start} spawn(process.execPath, ["-e", ${JSON.stringify(holds(100))}], { stdio: "inherit" });`,
    );
    const child = await node(
      `${start} spawn(process.execPath, ["-e", ${program}], { stdio: "inherit" });
       new Worker(${program} + " setInterval(() => {}, 1e6)", { eval: true });`,
    );
    // One of the two has spoken already.
    await once(child.stdout!, "data");
    expect(await isBeyond(child, 200)).toBe(true);
    expect(await isBeyond(child, 400)).toBe(false);
  });

  test("is shared memory too, and no file that is mapped", async () => {
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

  test("is nothing when its processes are gone", async () => {
    const child = await node(holds(100));
    child.kill("SIGKILL");
    await once(child, "exit");
    expect(await isBeyond(child, 0)).toBe(false);
  });
});

describe("a guard", () => {
  test("tells of each sandbox once, of those that are beyond their own limit", async () => {
    const [large, small] = await Promise.all([node(holds(100)), node(holds(1))]);
    const { guard, hasLooked } = newGuard();
    const told: string[] = [];
    const watch = (name: string, child: ChildProcess, mebibytes: number): Disposable =>
      guard.watch({
        firstPid: child.pid!,
        limitBytes: mebibytes * MiB,
        onExceeded: () => void told.push(name),
      });
    using _small = watch("small", small, 90);
    using _large = watch("large", large, 90);
    using _allowed = watch("allowed", large, 400);
    await hasLooked();
    expect(told).toEqual(["large"]);
    using _later = watch("later", large, 90);
    await hasLooked();
    expect(told).toEqual(["large", "later"]);
  });

  test("sees memory that grows while it watches", async () => {
    const child = await holding(process.execPath, [
      "-e",
      `console.log("ready"); process.stdin.once("data", () => { ${holds(100)} });`,
    ]);
    const told = Promise.withResolvers<void>();
    using _watch = new PollingMemoryGuard().watch({
      firstPid: child.pid!,
      limitBytes: 90 * MiB,
      onExceeded: told.resolve,
    });
    expect(await isBeyond(child, 90)).toBe(false);
    child.stdin!.write("grow\n");
    await told.promise;
  });

  test("tells nothing when its watch is over", async () => {
    const child = await node(holds(100));
    const { guard, hasLooked } = newGuard();
    const told: string[] = [];
    const watch = (name: string, mebibytes: number): Disposable =>
      guard.watch({
        firstPid: child.pid!,
        limitBytes: mebibytes * MiB,
        onExceeded: () => void told.push(name),
      });
    const over = watch("too late", 1);
    // One that goes on, to be looked at.
    using _allowed = watch("allowed", 400);
    over[Symbol.dispose]();
    await hasLooked();
    expect(told).toEqual([]);
  });
});
