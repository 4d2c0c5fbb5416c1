/**
 * The search for outputs in sub-directories, in trees that tools may leave.
 */
import { execFile } from "node:child_process";
import { mkdir, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, onTestFinished, test } from "vitest";
import type { Nested } from "../../../../worker/sandbox/work/nested-file.ts";
import { newWorkDir } from "../../../support/sandboxes/work-dir.ts";
import { openedSince, presentDescriptors } from "../sandbox-host.ts";

const run = promisify(execFile);

/** A work directory, and the search in it. */
async function place() {
  const workDir = await newWorkDir();
  onTestFinished(() => workDir[Symbol.asyncDispose]());
  const output = join(workDir.path, "output");
  const nested = async (): Promise<Nested | undefined> => {
    const before = await presentDescriptors();
    const left = await workDir.leftOutputs(10);
    await Promise.all(left.files.map(({ handle }) => handle.close()));
    expect(await openedSince(before)).toEqual([]);
    return left.nested;
  };
  return { output, nested };
}

/** Runs Python, which makes trees faster and deeper than Node, in a directory. */
async function python(directory: string, program: string): Promise<void> {
  await run("python3", ["-I", "-c", `import os\n${program}`], { cwd: directory });
}

describe("a file in a sub-directory of output/", () => {
  test("is found beside outputs and empty directories, and named by its path", async () => {
    const { output, nested } = await place();
    await writeFile(join(output, "a.txt"), "x");
    await mkdir(join(output, "empty/empty"), { recursive: true });
    expect(await nested()).toBeUndefined();
    await mkdir(join(output, "charts/may"), { recursive: true });
    await writeFile(join(output, "charts/may/a.png"), "x");
    expect(await nested()).toEqual({ path: "charts/may/a.png", kind: "file" });
  });

  test("is none behind a link, in whatever circle links lead", { tags: "promise-O1" }, async () => {
    const { output, nested } = await place();
    await mkdir(join(output, "a/b"), { recursive: true });
    for (const [target, path] of [
      ["/etc", "etc"],
      ["/etc", "a/etc"],
      ["/etc/hostname", "a/hostname"],
      [".", "self"],
      ["../..", "a/b/up"],
      ["loop", "a/loop"],
    ] as const)
      await symlink(target, join(output, path));
    await run("mkfifo", [join(output, "a/pipe")]);
    expect(await nested()).toBeUndefined();
  });

  test("is searched for in sixteen directories in each other", async () => {
    const { output, nested } = await place();
    const deep = Array(16).fill("d").join("/");
    await mkdir(join(output, deep, "d"), { recursive: true });
    await writeFile(join(output, deep, "d/too-deep.txt"), "x");
    expect(await nested()).toEqual({ path: `${deep}/`, kind: "unsearched" });
    await writeFile(join(output, deep, "found.txt"), "x");
    expect(await nested()).toEqual({ path: `${deep}/found.txt`, kind: "file" });
  });

  test(
    "is searched for among 4,000 entries, those of output/ included",
    { tags: "full" },
    async () => {
      const { output, nested } = await place();
      // Names of one pipe: to make 4,000 files takes longer than to search among them.
      await python(output, "os.mkfifo('0')\nfor i in range(1, 500): os.link('0', f'{i}')");
      await python(output, "os.mkdir('d')\nfor i in range(3_498): os.link('0', f'd/{i}')");
      expect(await nested()).toBeUndefined();
      // One would do if the directory comes last.
      await python(output, "for name in ('x', 'y'): os.symlink('.', f'd/{name}')");
      expect(await nested()).toMatchObject({ kind: "unsearched" });
    },
  );

  const title = "is given up, and reported, in %s";
  const isGivenUp = async ([, program]: readonly [string, string]): Promise<void> => {
    const { output, nested } = await place();
    await python(output, program);
    expect(await nested()).toMatchObject({ kind: "unsearched" });
  };
  test.for([
    ["directories in each other", "for i in range(200): os.mkdir('d'); os.chdir('d')"],
  ] as const)(title, isGivenUp);
  test.for([
    ["a directory of 5,000 directories", "for i in range(5_000): os.makedirs(f'wide/{i}')"],
    [
      "directories of directories",
      "for i in range(500):\n  for j in range(10): os.makedirs(f'{i}/{j}')",
    ],
    [
      "directories of links to each other",
      "for i in range(2_000): os.makedirs(f'd/{i}'); os.symlink('..', f'd/{i}/up')",
    ],
    ["30,000 directories", "for i in range(30_000): os.makedirs(f'{i % 300}/{i}')"],
  ] as const)(title, { tags: "full" }, isGivenUp);
});
