/**
 * `FILE:NAME`, and what a manifest would say of it.
 */
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { findTarget } from "../../../harness/tool/target.ts";

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
});
afterAll(() => rm(directory, { recursive: true }));

const find = (target: string, options: { toolsDir?: string; isClass?: boolean } = {}) =>
  findTarget({ target: join(directory, target), isClass: false, ...options });

describe("a target", () => {
  test("is a function or, by its definition, a class of a Python module", async () => {
    const common = { runtime: "python", toolsDir: directory, module: "tools" };
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
    ["tools.py", /names no function; accepted: FILE:FUNCTION/],
    [":function", /names no function|no language/],
    ["tools.py:", /names no function/],
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
});
