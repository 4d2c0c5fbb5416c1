/**
 * What `tool run` and `tool describe` name, and what a manifest would say of it.
 */
import { chmod, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { manifestEntry } from "../../../harness/tool/target/manifest-entry.ts";
import { type CodeTarget, findTarget, servedName } from "../../../harness/tool/target/target.ts";

let directory = "";
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "target-test-"));
  await mkdir(join(directory, "deep", "er"), { recursive: true });
  for (const file of ["tools.py", "deep/er/tools.py", "my-tool.py", "a.ts", "deep/b.mjs", "c.rb"]) {
    await writeFile(
      join(directory, file),
      "class Tool(Base):\n    class Inner: pass\n\ndef function(): pass\n",
    );
  }
  await writeFile(join(directory, "deep", "manifest.yaml"), "version: 1\ntools: {}\n");
  for (const file of ["greet.sh", "run.py"]) {
    await writeFile(join(directory, file), "#!/bin/sh\n");
    await chmod(join(directory, file), 0o755);
  }
});
afterAll(() => rm(directory, { recursive: true }));

interface FindOptions {
  readonly toolsDir?: string;
  readonly isClass?: boolean;
  readonly tool?: string;
}

async function find(target: string, options: FindOptions = {}): Promise<CodeTarget> {
  const found = await findTarget({ target: join(directory, target), isClass: false, ...options });
  if (found.kind !== "code") throw new Error(`${target} is a manifest`);
  return found;
}

describe("a target", () => {
  test("is a function or, by its definition, a class of a Python module", async () => {
    const common = { kind: "code", runtime: "python", toolsDir: directory, module: "tools" };
    expect(await find("tools.py:function")).toEqual({
      ...common,
      callable: { kind: "function", name: "function" },
    });
    expect(await find("tools.py:Tool")).toEqual({
      ...common,
      callable: { kind: "class", name: "Tool" },
    });
  });

  test("is a class when it is told so, and no class of a class", async () => {
    const kindOf = async (target: string, isClass: boolean) =>
      (await find(target, { isClass })).callable.kind;
    expect(await kindOf("tools.py:Imported", true)).toBe("class");
    expect(await kindOf("tools.py:Imported", false)).toBe("function");
    expect(await kindOf("tools.py:Inner", false)).toBe("function");
  });

  test("is named from the directory that the sandbox sees", async () => {
    expect(await find("deep/er/tools.py:f", { toolsDir: directory })).toMatchObject({
      toolsDir: directory,
      module: "deep.er.tools",
    });
    expect(await find("deep/b.mjs:f", { toolsDir: directory })).toMatchObject({
      runtime: "node",
      module: "deep/b.mjs",
    });
    expect(await find("a.ts:Tool")).toMatchObject({
      runtime: "node",
      module: "a.ts",
      callable: { kind: "function" },
    });
  });

  test.for([
    ["tools.py", /"\S+tools\.py" names no function or class; accepted: FILE:FUNCTION/],
    ["absent", /there is no "\S+absent"; accepted: .* a program; the directory of a manifest/],
    ["deep/er", /the directory \S+er has no manifest\.yaml/],
    [":function", /no language/],
    ["tools.py:", /there is no "\S+tools\.py:"/],
    ["c.rb:function", /is in no language of tools; .* \.py, \.js, \.mjs, \.ts, \.mts$/],
    ["absent.py:function", /absent\.py does not exist/],
    ["my-tool.py:function", /Python cannot import my-tool\.py: "my-tool" has other characters/],
  ] as const)("%s is refused", async ([target, message]) => {
    await expect(find(target)).rejects.toThrow(message);
  });

  test("is refused outside of the directory that the sandbox sees, and as a Node class", async () => {
    await expect(find("tools.py:f", { toolsDir: join(directory, "deep") })).rejects.toThrow(
      /is not below the directory/,
    );
    await expect(find("a.ts:f", { isClass: true })).rejects.toThrow(/--class is for Python/);
  });

  test("is a program where a file is named alone", async () => {
    expect(await find("greet.sh")).toEqual({
      kind: "code",
      runtime: "executable",
      toolsDir: directory,
      module: "greet.sh",
      callable: { kind: "program", name: "greet.sh" },
      tool: undefined,
    });
    expect(await find("run.py")).toMatchObject({ runtime: "executable", module: "run.py" });
    expect(await find("deep/b.mjs", { toolsDir: directory }).catch(String)).toMatch(/names no/);
  });

  test("is the manifest of a directory, whose entries say the rest", async () => {
    const target = join(directory, "deep");
    expect(await findTarget({ target, isClass: false, tool: "a" })).toMatchObject({
      kind: "manifest",
      directory: target,
      layout: { manifestPath: join(target, "manifest.yaml") },
      tool: "a",
    });
    await expect(findTarget({ target, isClass: true })).rejects.toThrow(/--class is for a tool/);
  });

  test("is served by the name of its function, so that the log names it", async () => {
    expect(servedName(await find("tools.py:function"))).toBe("function");
  });

  test("has several tools only as a class or a program", async () => {
    expect(servedName(await find("tools.py:Tool", { tool: "one" }))).toBe("one");
    expect(servedName(await find("tools.py:Tool"))).toBe("tool");
    expect(servedName(await find("greet.sh"))).toBe("greet.sh");
    await expect(find("tools.py:function", { tool: "one" })).rejects.toThrow(/--tool is for/);
  });
});

describe("the entry of a manifest", () => {
  const plain = { env: [] };

  test.for([
    ["tools.py:function", ["function"], "function", "function: function"],
    ["tools.py:Tool", ["Tool"], "Tool", "class_name: Tool"],
    ["tools.py:Tool", ["one"], "one", "class_name: Tool\n    tools:\n      - one"],
    ["tools.py:Tool", ["a", "b"], "Tool", "class_name: Tool\n    tools:\n      - a\n      - b"],
  ] as const)("of %s with the tools %j", async ([target, names, key, called]) => {
    const text = `  ${key}:\n    runtime: python\n    module: tools\n    ${called}`;
    expect(manifestEntry(await find(target), names, plain)).toBe(text);
  });

  test.for([
    [["greet"], "greet", ""],
    [["a", "b"], "greet.sh", "\n    tools:\n      - a\n      - b"],
  ] as const)("of a program with the tools %j", async ([names, key, tools]) => {
    const entry = manifestEntry(await find("greet.sh"), names, { profile: "big", env: ["A"] });
    const code = `    runtime: executable\n    executable: greet.sh${tools}`;
    const rest = "    sandbox_profile: big\n    env:\n      - A";
    expect(entry).toBe(`  ${key}:\n${code}\n${rest}`);
  });
});
