/**
 * What is counted of a directory that somebody fills: files, bytes, depth, and nothing outside.
 */
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { readdirSync } from "node:fs";
import {
  chmod,
  link,
  mkdir,
  mkdtemp,
  rename,
  rm,
  symlink,
  truncate,
  writeFile,
} from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { DiskUsage } from "../../../../worker/sandbox/accounting/disk-usage.ts";
import { maxDepth } from "../../../../worker/sandbox/accounting/tree-walk.ts";
import { ownFileSystem } from "../../../support/sandboxes/own-file-system.ts";
import { reachableDirectory } from "../../../support/workers/rig.ts";

const KiB = 1024;
const MiB = 1024 * KiB;
/** More than directories and the rounding to blocks take. */
const overheadBytes = 256 * KiB;

let top: string;
beforeEach(async () => {
  top = await mkdtemp(join(tmpdir(), "str-disk-use-"));
  const made = top;
  onTestFinished(() => rm(made, { recursive: true, force: true }));
});

function newWalk(): DiskUsage {
  const walk = new DiskUsage(top);
  onTestFinished(() => walk[Symbol.dispose]());
  return walk;
}

/**
 * Makes something in the directory by Python, which is quicker than Node and knows names that are
 * no text.
 */
function fill(program: string): void {
  const { status, stderr } = spawnSync("python3", ["-I", "-c", `import os\n${program}`], {
    cwd: top,
  });
  expect([status, String(stderr)]).toEqual([0, ""]);
}

/** How often a walk stops before it comes to its end. */
function stepsToEnd(walk: DiskUsage, onStep: () => void = () => undefined): number {
  let steps = 0;
  do {
    walk.goOn(-Infinity);
    steps++;
    if (steps % 100 === 0) onStep();
  } while (walk.isUnderWay);
  return steps;
}

/** Does something without root's right to look anywhere, as the owner of all that is there. */
function asOwner<T>(act: () => T): T {
  if (process.geteuid!() !== 0) return act();
  const ownerUid = 60_001;
  spawnSync("chown", ["-R", String(ownerUid), top]);
  process.seteuid!(ownerUid);
  try {
    return act();
  } finally {
    process.seteuid!(0);
  }
}

const openDescriptors = (): number => readdirSync("/proc/self/fd").length;

/** What a whole walk finds that begins now. */
function found(walk: DiskUsage) {
  walk.goOn(Infinity);
  walk.goOn(Infinity);
  const [whole] = walk.uses;
  return { files: whole.files, bytes: whole.bytes, isUncountable: whole.isUncountable };
}

describe("what is in a directory", () => {
  test("was there when the walk was made, and what came later is more than that", async () => {
    await writeFile(join(top, "staged"), Buffer.alloc(MiB, 1));
    const walk = newWalk();
    expect(walk.staged.inodes.size).toBe(1);
    await mkdir(join(top, "made"));
    await writeFile(join(top, "made", "file"), Buffer.alloc(2 * MiB, 1));
    const { files, bytes } = found(walk);
    expect(files).toBe(3);
    const added = bytes - walk.staged.bytes;
    expect(added).toBeGreaterThanOrEqual(2 * MiB);
    expect(added).toBeLessThan(2 * MiB + overheadBytes);
  });

  test("counts by what it takes, not by what it says", async () => {
    await writeFile(join(top, "sparse"), "");
    await truncate(join(top, "sparse"), 1024 * MiB);
    expect(found(newWalk()).bytes).toBeLessThan(overheadBytes);
  });

  test("counts once under two names, and under a new one", async () => {
    await writeFile(join(top, "one"), Buffer.alloc(MiB, 1));
    await link(join(top, "one"), join(top, "two"));
    const walk = newWalk();
    expect(found(walk)).toMatchObject({ files: 1 });
    await rename(join(top, "one"), join(top, "three"));
    const after = found(walk);
    expect(after.files).toBe(1);
    expect(after.bytes).toBeLessThan(MiB + overheadBytes);
  });

  test("ends at links, wherever they lead", { tags: "promise-E3" }, async () => {
    const outside = await mkdtemp(join(tmpdir(), "str-disk-use-outside-"));
    onTestFinished(() => rm(outside, { recursive: true }));
    await writeFile(join(outside, "large"), Buffer.alloc(MiB, 1));
    await symlink(outside, join(top, "directory"));
    await symlink(join(outside, "large"), join(top, "file"));
    await symlink(top, join(top, "itself"));
    expect(found(newWalk())).toMatchObject({ files: 3 });
    expect(found(newWalk()).bytes).toBeLessThan(overheadBytes);
  });

  test("is not what a directory is exchanged for before it is opened", async () => {
    const outside = await mkdtemp(join(tmpdir(), "str-disk-use-outside-"));
    onTestFinished(() => rm(outside, { recursive: true }));
    await writeFile(join(outside, "large"), Buffer.alloc(MiB, 1));
    const walk = newWalk();
    await mkdir(join(top, "directory"));
    // Its name, and what is behind that.
    for (let steps = 0; steps < 2; steps++) walk.goOn(-Infinity);
    expect(walk.uses.at(-1)!.files).toBe(1);
    await rm(join(top, "directory"), { recursive: true });
    await symlink(outside, join(top, "directory"));
    walk.goOn(Infinity);
    const [whole] = walk.uses;
    expect(whole).toMatchObject({ files: 1 });
    expect(whole.bytes).toBeLessThan(overheadBytes);
  });

  test("is looked at in a directory that its owner has closed, by that owner", async () => {
    // The owner cannot get to directories of root.
    top = await reachableDirectory();
    const made = top;
    onTestFinished(() => rm(made, { recursive: true }));
    await mkdir(join(top, "closed"));
    await writeFile(join(top, "closed", "file"), Buffer.alloc(MiB, 1));
    for (const mode of [0o000, 0o300, 0o600]) {
      await chmod(join(top, "closed"), mode);
      const { files, bytes } = asOwner(() => found(newWalk()));
      expect([mode, files, bytes >= MiB]).toEqual([mode, 2, true]);
    }
  });

  test(
    "cannot be counted in a directory that is closed as often as it is opened",
    { tags: "full" },
    async () => {
      await mkdir(join(top, "closed"));
      await writeFile(join(top, "closed", "file"), "");
      const walk = newWalk();
      const closing = spawn("python3", [
        ...["-I", "-c", "import os, sys\nwhile True: os.chmod(sys.argv[1], 0)"],
        join(top, "closed"),
      ]);
      onTestFinished(async () => {
        if (closing.kill("SIGKILL")) await once(closing, "exit");
        await chmod(join(top, "closed"), 0o755);
      });
      await vi.waitFor(
        () => expect(asOwner(() => found(walk))).toMatchObject({ isUncountable: true }),
        { timeout: 20_000, interval: 1 },
      );
    },
  );

  test("counts under names that are no text, and in directories with such names", () => {
    fill(String.raw`
os.mkdir(b"\xff")
for directory in (b".", b"\xff"):
    for name in (b"\xff%d", b"\xc3(%d", b"caf\xc3\xa9%d", b"\n%d"):
        for number in range(100):
            with open(directory + b"/" + name % number, "wb") as file: file.write(bytes(4096))`);
    const { files, bytes } = found(newWalk());
    expect(files).toBe(801);
    expect(bytes).toBeGreaterThanOrEqual(800 * 4 * KiB);
  });

  test("counts by its name while a walk is on its way, though it is gone by then", async () => {
    for (const name of ["one", "two"]) await writeFile(join(top, name), "");
    const walk = newWalk();
    walk.goOn(-Infinity);
    await rm(join(top, "one"));
    await rm(join(top, "two"));
    stepsToEnd(walk);
    expect(walk.uses[0].files).toBe(2);
    stepsToEnd(walk);
    expect(walk.uses[0].files).toBe(0);
  });

  test("is too deep beyond a depth, and not before", async () => {
    const makeDepth = (depth: number) =>
      spawnSync("/bin/sh", ["-c", 'mkdir -p "$1"', "sh", join(top, "d/".repeat(depth))]);
    makeDepth(maxDepth);
    expect(found(newWalk())).toMatchObject({ files: maxDepth, isUncountable: false });
    makeDepth(maxDepth + 1);
    expect(found(newWalk())).toMatchObject({ isUncountable: true });
  });

  test("may be gone", async () => {
    await mkdir(join(top, "made"));
    const walk = newWalk();
    await rm(join(top, "made"), { recursive: true });
    expect(found(walk)).toMatchObject({ files: 0, bytes: 0 });
  });
});

describe("a walk", () => {
  test("through many entries stops in between, and says what it has so far", async () => {
    const walk = newWalk();
    await Promise.all(
      Array.from({ length: 200 }, (_, index) => writeFile(join(top, String(index)), "")),
    );
    const soFar = () => walk.uses.map((use) => [use.files, use.inodes.size]);
    expect(soFar()).toEqual([
      [0, 0],
      [0, 0],
    ]);
    for (let entries = 0; entries <= 200; entries++) {
      walk.goOn(-Infinity);
      // First the names, then what is behind them.
      expect(soFar()).toEqual([
        [0, 0],
        [200, entries],
      ]);
    }
    expect(walk.isUnderWay).toBe(true);
    stepsToEnd(walk);
    expect(soFar()).toEqual([
      [200, 200],
      [0, 0],
    ]);
  });

  const entries = 500;
  /** As good for this, and quicker to make. */
  const directories = 100;
  test.for([
    ["files beside each other", `for name in range(${entries}): os.mknod(str(name))`, 2],
    [
      "empty directories beside each other",
      `for name in range(${directories}): os.mkdir(str(name))`,
      3,
    ],
    [
      "empty directories far below",
      `os.makedirs("/".join("x" * ${maxDepth - 1})); os.chdir("/".join("x" * ${maxDepth - 1}))
for name in range(${directories}): os.mkdir(str(name))`,
      3,
    ],
    [
      "directories in each other",
      `for name in range(${directories} // 20): os.makedirs("%d/" % name + "/".join("x" * 20))`,
      2,
    ],
  ] as const)("stops at each name, each entry and each directory: %s", ([, make, stops]) => {
    const walk = newWalk();
    fill(make);
    const before = openDescriptors();
    const steps = stepsToEnd(walk, () =>
      expect(openDescriptors()).toBeLessThanOrEqual(before + maxDepth + 1),
    );
    const [whole] = walk.uses;
    expect(whole.files).toBeGreaterThanOrEqual(directories);
    expect(steps).toBeGreaterThanOrEqual(stops * whole.files);
    expect(openDescriptors()).toBe(before);
  });

  test("that is given up in between keeps nothing open", () => {
    const before = openDescriptors();
    const walk = new DiskUsage(top);
    fill(`os.makedirs("/".join("x" * 20))`);
    while (openDescriptors() < before + 10) walk.goOn(-Infinity);
    walk[Symbol.dispose]();
    expect(openDescriptors()).toBe(before);
  });

  test("goes on in a directory that is moved meanwhile", async () => {
    const walk = newWalk();
    fill(
      `os.makedirs("a/b/c"); os.mkdir("elsewhere"); open("a/b/c/file", "wb").write(bytes(1 << 20))`,
    );
    const seen = () => walk.uses.at(-1)!.inodes.size;
    // The two in the top one, b, and c: it is in b now.
    while (seen() < 4) walk.goOn(-Infinity);
    await rename(join(top, "a", "b"), join(top, "elsewhere", "b"));
    await rename(join(top, "a"), join(top, "other"));
    stepsToEnd(walk);
    expect(walk.uses[0].bytes).toBeGreaterThanOrEqual(MiB);
  });

  test("says by how much the file system has filled since a whole one began", async () => {
    top = await ownFileSystem();
    const walk = newWalk();
    expect(walk.fileSystemGrowth.bytes).toBeLessThan(8 * MiB);
    fill(`for name in range(${entries}): os.mknod(str(name))`);
    walk.goOn(-Infinity);
    await writeFile(join(top, "large"), Buffer.alloc(16 * MiB, 1));
    expect(walk.fileSystemGrowth.bytes).toBeGreaterThanOrEqual(16 * MiB);
    expect(walk.fileSystemGrowth.files).toBeGreaterThan(entries);
    // It began before there was so much, and so proves nothing.
    stepsToEnd(walk);
    expect(walk.fileSystemGrowth.bytes).toBeGreaterThanOrEqual(16 * MiB);
    stepsToEnd(walk);
    expect(walk.fileSystemGrowth.bytes).toBeLessThan(8 * MiB);
  });

  test("of a directory that is not there is none", () => {
    expect(() => new DiskUsage(join(top, "missing"))).toThrow(
      expect.objectContaining({ code: "ENOENT" }),
    );
  });
});
