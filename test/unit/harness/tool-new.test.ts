/**
 * Names of new tools, and entries in manifests that somebody else has written.
 */
import { describe, expect, test } from "vitest";
import { withEntry } from "../../../harness/tool/new/manifest-entry.ts";
import { nodeNames, pythonClassName, pythonNames } from "../../../harness/tool/new/names.ts";
import { parseNewToolName } from "../../../harness/options/option-values.ts";
import { builtInProfiles } from "../../../worker/sandbox/profile.ts";
import { parseProfiles } from "../../../worker/sandbox/profiles-file.ts";

const python = "/usr/bin/python3";

describe("the name of a tool", () => {
  test.for([
    ["count", "count"],
    ["my-tool", "my_tool"],
    ["a.b-c", "a_b_c"],
    ["3d", "tool_3d"],
    ["json", "json_tool"],
    ["class", "class_tool"],
    ["len", "len_tool"],
    ["ToolError", "ToolError_tool"],
    ["secure_tool_runtime", "secure_tool_runtime_tool"],
  ] as const)("%s becomes the Python module %s", async ([tool, name]) => {
    expect(await pythonNames(tool, python)).toEqual({ file: name, callable: name });
  });

  test.for([
    ["count", "count"],
    ["my-tool", "myTool"],
    ["a.b_c", "aBC"],
    ["3d", "tool3d"],
    ["delete", "deleteTool"],
    ["ToolContext", "ToolContextTool"],
    ["trailing-", "trailing"],
  ] as const)("%s becomes the Node function %s", ([tool, name]) => {
    expect(nodeNames(tool)).toEqual({ file: tool, callable: name });
  });

  test.for([
    ["count", "Count"],
    ["my_tool", "MyTool"],
    ["tool_3d", "Tool3d"],
    ["a_b_c", "ABC"],
    ["dynamic_tool", "DynamicToolClass"],
  ] as const)("%s becomes the Python class %s", ([name, className]) => {
    expect(pythonClassName(name)).toBe(className);
  });

  test("begins with a letter or digit, as manifests have it", () => {
    expect(parseNewToolName("a.b-c_1")).toBe("a.b-c_1");
    for (const name of ["", "_a", "-a", ".a", "a/b", "a..b", "ä", "a".repeat(101)]) {
      expect(() => parseNewToolName(name)).toThrow(/The tool name/);
    }
  });

  test("is told by an interpreter that can be asked", async () => {
    await expect(pythonNames("x", "/nonexistent/python3")).rejects.toThrow(
      /cannot use \/nonexistent\/python3 as the Python interpreter/,
    );
  });
});

const entry = { runtime: "python", module: "added", function: "added" };
const add = (text: string | undefined, tool = "added", profiles = builtInProfiles): string =>
  withEntry("tools/manifest.yaml", text, tool, entry, profiles);

describe("an entry", () => {
  test("makes a manifest where there is none", () => {
    const text = add(undefined);
    expect(text).toContain("\nversion: 1\n");
    expect(text).toContain(
      "tools:\n  added:\n    runtime: python\n    module: added\n    function: added\n",
    );
  });

  test("comes last, and leaves every other byte as it is", () => {
    const before = `# yaml-language-server: $schema=x
# Ours.
tools: # all of them

    # the oldest
    zebra: &common
      module: "zoo.zebra" # striped
      function: run
      env: [A,B]

    ant:
      <<: *common
      function: 'crawl'
      description: >-
        a long text that stays folded,
        as its author had it
      # timeout_seconds: 3

# what it is a version of
version: 1
`;
    expect(add(before)).toBe(
      before.replace(
        "seconds: 3\n",
        `seconds: 3

    added:
      runtime: python
      module: added
      function: added
`,
      ),
    );
  });

  test.for([
    ["at the end of a file without a newline", "a:\n    module: a\n    function: a"],
    [
      "without empty lines where there are none",
      "a: {module: a, function: a}\n  b: {module: b, function: b}\n",
    ],
    ["after an entry in braces", "a: {module: a, function: a} # yes\n"],
    [
      "after a text in lines",
      "a:\n    module: a\n    function: a\n    description: |\n      one\n\n      two\n",
    ],
  ] as const)("comes %s", ([, tools]) => {
    const before = `version: 1\ntools:\n  ${tools}`;
    const after = add(before);
    expect(after.startsWith(before)).toBe(true);
    expect(after.slice(before.length).replace(/^\n+/, "")).toBe(
      "  added:\n    runtime: python\n    module: added\n    function: added\n",
    );
    expect(/\n\n {2}added/.test(after)).toBe(!tools.includes("b:"));
  });

  test.for([
    '{"version": 1, "tools": {"a": {"module": "a", "function": "b"}}}',
    '{"version": 1, "tools": {}}',
  ])("goes into a map in braces: %s", (before) => {
    const document = JSON.parse(before) as { version: 1; tools: object };
    expect(JSON.parse(add(before))).toEqual({
      version: 1,
      tools: { ...document.tools, added: entry },
    });
  });

  test("takes the place of braces with nothing in them", () => {
    expect(add("version: 1\ntools: {} # none yet\n# end\n")).toBe(
      "version: 1\ntools: # none yet\n  added:\n    runtime: python\n    module: added\n    function: added\n# end\n",
    );
    expect(add("tools: {}\nversion: 1")).toMatch(/^tools:\n {2}added:\n[^]*\nversion: 1$/);
  });

  test("whose name looks like a number stays text", () => {
    expect(add(undefined, "1.50")).toContain('\n  "1.50":\n');
  });

  test("is refused where the tool is there already, served or not", () => {
    const there = "version: 1\ntools: {added: {module: a, function: b}}\n";
    expect(() => add(there)).toThrow('tools/manifest.yaml has a tool "added" already');
    expect(() => add("version: 1\ntools: {added: {executable: x}}\n")).toThrow(/already/);
  });

  test("comes after tools that name a profile of the operator's own, where it is known", () => {
    const before = "version: 1\ntools:\n  b: {module: b, function: b, sandbox_profile: big}\n";
    const file = "version: 1\nprofiles: {big: {extends: standard}}\n";
    const own = parseProfiles(Buffer.from(file), "profiles.yaml");
    expect(add(before, "added", own)).toContain("\n  added:\n");
    expect(() => add(before)).toThrow(/sandbox_profile: expected one of .*, found "big"/);
  });

  test("is refused in a manifest that cannot be used, with the place of what is wrong", () => {
    expect(() => add("")).toThrow(/^tools\/manifest\.yaml/);
    expect(() => add("version: 1\ntools:\n  a: {module: 7}\n")).toThrow(
      /^tools\/manifest\.yaml:3:15: tool "a": module: expected/m,
    );
    expect(() => add("version: 1\nx: &a {}\ntools: *a\n")).toThrow(
      /cannot be added to; add this to its tools:\nadded:\n {2}runtime: python/,
    );
  });
});
