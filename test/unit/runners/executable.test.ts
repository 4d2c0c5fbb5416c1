/**
 * Executables: which ones this host can run, where they are looked for, and what their sandboxes
 * hold.
 */
import { chmod, mkdir, mkdtemp, realpath, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import type { ToolEntry } from "../../../worker/manifest/manifest.ts";
import { openExecutableRunner } from "../../../worker/runners/executable.ts";
import { builtInProfiles } from "../../../worker/sandbox/profile.ts";
import { tool as anyTool } from "../manifest/fixtures.ts";

const never = new AbortController().signal;
const profile = builtInProfiles.get("standard")!;
const script = "#!/bin/sh\n";

const tool = (changes: Partial<ToolEntry> = {}): ToolEntry =>
  anyTool("tool", {
    runtime: "executable",
    module: "tool",
    callable: { kind: "program", name: "tool" },
    ...changes,
  });

/** A 64-bit ELF file for a machine, with the loader that it asks for. */
function elf(machine: number, loader?: string): Buffer {
  const header = Buffer.alloc(64 + 56);
  header.write("\x7fELF\x02\x01", "latin1");
  header.writeUInt16LE(machine, 18);
  header.writeBigUInt64LE(64n, 32);
  header.writeUInt16LE(loader === undefined ? 0 : 1, 56);
  header.writeUInt32LE(3, 64);
  header.writeBigUInt64LE(BigInt(header.length), 64 + 8);
  return Buffer.concat([header, Buffer.from(`${loader ?? ""}\0`)]);
}

/** A runner on an x64 host with these files, all executable. */
async function runnerWith(files: Readonly<Record<string, string | Buffer>>) {
  const toolsDir = await realpath(await mkdtemp(join(tmpdir(), "str-executables-")));
  onTestFinished(() => rm(toolsDir, { recursive: true }));
  for (const [name, content] of Object.entries(files)) {
    await mkdir(dirname(join(toolsDir, name)), { recursive: true });
    await writeFile(join(toolsDir, name), content, { mode: 0o755 });
  }
  const backend = {
    share: async (path: string) => ({
      source: path,
      [Symbol.asyncDispose]: () => Promise.resolve(),
    }),
    acquire: () => Promise.reject(new Error("no sandboxes here")),
  };
  const runner = openExecutableRunner({
    toolsDir,
    backend,
    workerEnvironment: {},
    architecture: "x64",
  });
  return { toolsDir, runner };
}

describe("an executable is refused that", () => {
  const inside = "/tools/executable";
  test.each<readonly [string, string | Buffer, string | undefined]>([
    ["is a script of the system's shell", script, undefined],
    ["is a script of a program in PATH", "#!/usr/bin/env sh\n", undefined],
    ["is a script of a program beside it", `#!${inside}/tool -x\n`, undefined],
    ["is a program of this host", elf(62, "/usr/bin/env"), undefined],
    ["is a program that needs no loader", elf(62), undefined],
    ["is for another processor", elf(183), "tool is an arm64 program, this host is x64"],
    ["is for a strange one", elf(999), "tool is an unknown (999) program, this host is x64"],
    [
      "is for macOS",
      Buffer.from("cffaedfe00", "hex"),
      "tool is a program for macOS, this host is Linux",
    ],
    ["is for Windows", "MZ\x90", "tool is a program for Windows, this host is Linux"],
    [
      "needs a loader that is not there",
      elf(62, "/lib/ld-nowhere.so.1"),
      "tool needs /lib/ld-nowhere.so.1, which this host does not have",
    ],
    [
      "has an interpreter that sandboxes do not see",
      "#!/home/me/python\n",
      "tool needs /home/me/python, which is no part of sandboxes",
    ],
    [
      "has one that is not there",
      "#!/usr/bin/no-such-shell\n",
      "tool needs /usr/bin/no-such-shell, which this host does not have",
    ],
    [
      "has one that is not in PATH",
      "#!/usr/bin/env no-such-shell\n",
      'tool needs the program "no-such-shell", which sandboxes do not have',
    ],
    [
      "has one without a directory",
      "#!sh\n",
      'tool has the interpreter "sh", which is no absolute path',
    ],
    [
      "has lines as on Windows",
      "#!/bin/sh\r\n",
      "tool has lines that end as on Windows; its interpreter is not found",
    ],
    ["is text", "echo\n", /^tool is neither a program nor a script/ as unknown as string],
    ["is empty", "", /^tool is neither a program nor a script/ as unknown as string],
    ["is a beginning only", "\x7fELF\x02\x01", /^tool is neither/ as unknown as string],
  ])("%s", async (_, content, expected) => {
    const { runner } = await runnerWith({ tool: content });
    const reason = (await runner.refuse(tool(), never))?.publicReason;
    if (expected === undefined) expect(reason).toBeUndefined();
    else expect(reason).toMatch(expected);
  });

  test("is no executable, is no file or is not there", async () => {
    const { runner, toolsDir } = await runnerWith({ tool: script, "directory/x": script });
    const refusal = async (module: string) =>
      (await runner.refuse(tool({ module }), never))?.publicReason;
    await chmod(join(toolsDir, "tool"), 0o644);
    expect(await refusal("tool")).toBe("tool is not executable (chmod +x)");
    expect(await refusal("directory")).toBe("directory is not a file");
    expect(await refusal("absent")).toBe("absent is not there");
  });

  test("leads out of the directory, by a link or by its tool_dir", async () => {
    const { runner, toolsDir } = await runnerWith({ inner: script });
    await symlink("/bin/sh", join(toolsDir, "tool"));
    await symlink("inner", join(toolsDir, "linked"));
    const outside = "tool is a link to outside of the directory of executables";
    expect(await runner.refuse(tool(), never)).toMatchObject({ publicReason: outside });
    expect(await runner.refuse(tool({ module: "linked" }), never)).toBeUndefined();
    expect(await runner.refuse(tool({ toolDir: "/usr" }), never)).toMatchObject({
      publicReason: "tool is in a tool_dir that is not below TOOLS_EXECUTABLE_DIR",
    });
  });
});

describe("a program's sandbox", () => {
  const inside = "/tools/executable";
  const files = { "kit/tool": script, "kit/python/bin/packed": script, tool: script };

  test("has the program of tool_dir, else of its python/bin, and where its modules are", async () => {
    const { runner, toolsDir } = await runnerWith(files);
    const prepared = async (changes: Partial<ToolEntry>) => {
      await using ready = await runner.prepare(tool(changes), profile);
      const { launch, toolsPath, environment, mounts } = ready;
      return { program: launch.argv[0], toolsPath, path: environment.get("PYTHONPATH"), mounts };
    };
    const mounts = [{ source: toolsDir, target: inside }];
    expect(await prepared({})).toEqual({
      ...{ program: `${inside}/tool`, toolsPath: inside, path: undefined, mounts },
    });
    const kit = { toolsPath: `${inside}/kit`, path: `${inside}/kit/python`, mounts };
    expect(await prepared({ toolDir: "kit" })).toEqual({ program: `${inside}/kit/tool`, ...kit });
    const program = `${inside}/kit/python/bin/packed`;
    expect(await prepared({ module: "packed", toolDir: `${toolsDir}/kit/` })).toEqual({
      program,
      ...kit,
    });
  });

  test("of an isolated one has its directory only, or its file", async () => {
    const { runner } = await runnerWith(files);
    const targets = async (changes: Partial<ToolEntry>) => {
      await using ready = await runner.prepare(tool({ isolate: true, ...changes }), profile);
      return ready.mounts.map(({ target }) => target);
    };
    expect(await targets({ toolDir: "kit" })).toEqual([`${inside}/kit`]);
    expect(await targets({})).toEqual([`${inside}/tool`]);
  });

  test("of a program that is gone cannot be made", async () => {
    const { runner } = await runnerWith({});
    await expect(runner.prepare(tool(), profile)).rejects.toMatchObject({
      name: "SandboxError",
      message: "tool is not there",
    });
  });
});
