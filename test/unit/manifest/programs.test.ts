import { describe, expect, test } from "vitest";
import { type ParseOptions, parseManifest } from "../../../worker/manifest/parse.ts";
import { entriesOf, entryFor } from "../../../worker/manifest/programs.ts";

function parse(lines: string, options: Partial<ParseOptions> = {}) {
  const text = `version: 1\ntools:\n  run:\n    runtime: code\n${lines}`;
  const profileNames = ["standard", "restrictive"];
  const { manifest } = parseManifest(Buffer.from(text), {
    path: "m.yaml",
    profileNames,
    ...options,
  });
  const tool = manifest.tools.get("run");
  if (tool === undefined) throw new Error("no tool");
  return tool;
}

describe("an entry for programs", () => {
  test("takes every language, in the restrictive profile, and says what it takes", () => {
    const tool = parse("");
    expect(tool).toMatchObject({
      languages: ["python", "typescript", "javascript"],
      profile: "restrictive",
      callable: { kind: "code" },
      described: { parameters: { required: ["code", "language"], additionalProperties: false } },
    });
    expect(tool.description).toContain("__out");
    expect(parse("    sandbox_profile: standard\n").profile).toBe("standard");
  });

  test("is one entry for each interpreter, the same each time", () => {
    const tool = parse("");
    expect(entriesOf(tool).map(({ runtime }) => runtime)).toEqual(["python", "node"]);
    expect(entryFor(tool, "typescript")).toBe(entryFor(tool, "javascript"));
    expect(entryFor(tool, "python")).toBe(entriesOf(tool)[0]);
  });

  test("needs no language where it has one, which may have packages", () => {
    const tool = parse("    languages: [python]\n    requirements: [pandas]\n");
    expect(tool).toMatchObject({
      runtime: "python",
      packages: { requirements: ["pandas"] },
      described: { parameters: { required: ["code"] } },
    });
    expect(entriesOf(parse("    languages: [javascript]\n"))).toMatchObject([{ runtime: "node" }]);
  });

  test.each([
    ["    languages: []\n", "languages: expected a list of python, typescript, javascript"],
    ["    languages: [ruby]\n", "languages[0]: expected a list of python, typescript, javascript"],
    ["    requirements: [pandas]\n", "allowed only with languages of one interpreter"],
    ["    module: x\n", "module: not used with runtime code"],
    ["    parameters: {type: object}\n", "parameters: not used with runtime code"],
  ])("refuses %j", (lines, problem) => {
    expect(() => parse(lines)).toThrow(problem);
  });

  test("is none of a toolset", () => {
    expect(() => parse("", { prefix: "set." })).toThrow(
      "runtime: allowed only in the worker's own manifest",
    );
  });
});
