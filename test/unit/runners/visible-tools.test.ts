/**
 * What an isolated tool sees of the directory of tools.
 */
import { mkdir, mkdtemp, realpath, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { builtInProfiles } from "../../../worker/sandbox/profile.ts";
import {
  isIsolated,
  nodeModuleFiles,
  pythonModuleFiles,
  shareTools,
} from "../../../worker/runners/visible-tools.ts";

async function directoryWith(...paths: readonly string[]): Promise<string> {
  const directory = await realpath(await mkdtemp(join(tmpdir(), "str-visible-")));
  onTestFinished(() => rm(directory, { recursive: true }));
  for (const path of paths) {
    await mkdir(dirname(join(directory, path)), { recursive: true });
    await writeFile(join(directory, path), "");
  }
  return directory;
}

describe("of a Python module", () => {
  test.for<[string, string[], string, string[]]>([
    ["its file", ["tool.py", "other.py"], "tool", ["tool.py"]],
    ["its package", ["tool/__init__.py", "tool/part.py", "other.py"], "tool", ["tool"]],
    ["its package before a file of its name", ["tool/__init__.py", "tool.py"], "tool", ["tool"]],
    ["its file beside a directory of its name", ["tool/data.txt", "tool.py"], "tool", ["tool.py"]],
    [
      "what its packages are made of, and not what else is in them",
      ["a/__init__.py", "a/b/__init__.py", "a/b/tool.py", "a/b/other.py", "a/other.py"],
      "a.b.tool",
      ["a/__init__.py", "a/b/__init__.py", "a/b/tool.py"],
    ],
    ["no __init__.py where there is none", ["a/tool.py", "a/other.py"], "a.tool", ["a/tool.py"]],
    ["nothing when it is installed somewhere else", ["other.py"], "tool", []],
  ])("is seen %s", async ([, files, module, visible]) => {
    expect(await pythonModuleFiles(await directoryWith(...files), module)).toEqual(visible);
  });

  test("nothing is seen outside of the directory", async () => {
    const [outside, inside] = [await directoryWith("tool.py"), await directoryWith("real.py")];
    await symlink(join(outside, "tool.py"), join(inside, "tool.py"));
    await symlink("real.py", join(inside, "linked.py"));
    expect(await pythonModuleFiles(inside, "tool")).toEqual([]);
    expect(await pythonModuleFiles(inside, "linked")).toEqual(["linked.py"]);
    expect(await pythonModuleFiles("/no/such/directory", "tool")).toEqual([]);
  });
});

describe("of a Node module", () => {
  test.for<[string, string[], string, string[]]>([
    ["its file", ["tool.js", "other.js"], "tool.js", ["tool.js"]],
    [
      "the package.json beside it",
      ["a/tool.ts", "a/package.json", "package.json"],
      "a/tool.ts",
      ["a/tool.ts", "a/package.json"],
    ],
    [
      "the nearest package.json above it",
      ["a/b/c/tool.ts", "a/package.json", "package.json", "a/b/other.ts"],
      "a/b/c/tool.ts",
      ["a/b/c/tool.ts", "a/package.json"],
    ],
    [
      "that of the directory itself",
      ["tool.js", "package.json"],
      "tool.js",
      ["tool.js", "package.json"],
    ],
    [
      "none above node_modules, as Node looks for it",
      ["node_modules/p/tool.js", "package.json"],
      "node_modules/p/tool.js",
      ["node_modules/p/tool.js"],
    ],
    ["nothing when it is gone", ["other.js"], "tool.js", []],
  ])("is seen %s", async ([, files, module, visible]) => {
    expect(await nodeModuleFiles(await directoryWith(...files), module)).toEqual(visible);
  });
});

test("what is seen is shared for as long as it is held, part by part", async () => {
  const inUse: string[] = [];
  const backend = {
    share: async (path: string) => {
      if (path.endsWith("gone")) throw new Error("gone");
      inUse.push(path);
      const giveBack = async (): Promise<void> => void inUse.splice(inUse.indexOf(path), 1);
      return { source: `/copy${path}`, [Symbol.asyncDispose]: giveBack };
    },
  };
  const code = { directory: "/srv", isReadable: false };
  const place = { code, target: "/tools/python" };
  {
    await using shared = await shareTools(backend, { ...place, only: ["a/__init__.py", "a/b"] });
    expect(shared.mounts).toEqual([
      { source: "/copy/srv/a/__init__.py", target: "/tools/python/a/__init__.py" },
      { source: "/copy/srv/a/b", target: "/tools/python/a/b" },
    ]);
    expect(inUse).toHaveLength(2);
  }
  await expect(shareTools(backend, { ...place, only: ["a", "gone"] })).rejects.toThrow("gone");
  expect(inUse).toEqual([]);
  await using whole = await shareTools(backend, { ...place, only: undefined });
  expect(whole.mounts).toEqual([{ source: "/copy/srv", target: "/tools/python" }]);
  const readable = { ...place, code: { ...code, isReadable: true }, only: undefined };
  await using asItIs = await shareTools(backend, readable);
  expect(asItIs.mounts).toEqual([{ source: "/srv", target: "/tools/python" }]);
});

test("a backend that isolates nothing isolates no tool", () => {
  const profile = builtInProfiles.get("standard")!;
  expect(isIsolated({ isolate: true }, profile)).toBe(true);
  expect(isIsolated({ isolate: false }, profile)).toBe(false);
  expect(isIsolated({ isolate: true }, { ...profile, backend: "host" })).toBe(false);
});
