/**
 * What is counted of a directory that somebody fills: files, bytes, depth, and nothing outside.
 */
import { spawnSync } from "node:child_process";
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
import { beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { DiskWalk, maxDepth } from "../../../worker/sandbox/totals/disk-use.ts";

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

function newWalk(): DiskWalk {
  const walk = new DiskWalk(top);
  onTestFinished(() => walk[Symbol.dispose]());
  return walk;
}

/** What a whole walk finds that begins now. */
function found(walk: DiskWalk) {
  walk.goOn(Infinity);
  walk.goOn(Infinity);
  const [whole] = walk.uses;
  return { files: whole!.files, bytes: whole!.bytes, isTooDeep: whole!.isTooDeep };
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

  test("ends at links, wherever they lead", async () => {
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
    expect(whole!.bytes).toBeLessThan(overheadBytes);
  });

  test("is looked at in a directory that its owner has closed", async () => {
    await mkdir(join(top, "closed"));
    await writeFile(join(top, "closed", "file"), Buffer.alloc(MiB, 1));
    for (const mode of [0o000, 0o300, 0o600]) {
      await chmod(join(top, "closed"), mode);
      const { files, bytes } = found(newWalk());
      expect([mode, files, bytes >= MiB]).toEqual([mode, 2, true]);
    }
  });

  test("is too deep beyond a depth, and not before", async () => {
    const makeDepth = (depth: number) =>
      spawnSync("/bin/sh", ["-c", 'mkdir -p "$1"', "sh", join(top, "d/".repeat(depth))]);
    makeDepth(maxDepth);
    expect(found(newWalk())).toMatchObject({ files: maxDepth, isTooDeep: false });
    makeDepth(maxDepth + 1);
    expect(found(newWalk())).toMatchObject({ isTooDeep: true });
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
    for (let looks = 1; looks <= 400; looks++) {
      walk.goOn(-Infinity);
      // First the names, then what is behind them.
      expect(soFar()).toEqual([
        [0, 0],
        [Math.min(looks, 200), Math.max(0, looks - 200)],
      ]);
    }
    walk.goOn(-Infinity);
    expect(soFar()).toEqual([
      [200, 200],
      [0, 0],
    ]);
  });

  test("of a directory that is not there is none", () => {
    expect(() => new DiskWalk(join(top, "missing"))).toThrow(
      expect.objectContaining({ code: "ENOENT" }),
    );
  });
});
