/**
 * The entry by which `harness program run` runs a program.
 */
import { mkdtemp, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { UsageError } from "../../../harness/context.ts";
import {
  type ProgramEntryFlags,
  programEntry,
} from "../../../harness/tool/programs/program-entry.ts";
import { parseManifest } from "../../../worker/manifest/parse.ts";
import type { ProgramLanguage } from "../../../worker/protocol/tool-calls/program.ts";

const profileNames = ["restrictive", "standard", "permissive"];

const callable = `
  query: { module: sales, function: query, namespace: sales, allowed_callers: [programmatic] }
  other: { module: sales, function: other, namespace: sales, allowed_callers: [programmatic] }
  upper: { module: sales, function: upper, python: 3.10, allowed_callers: [direct, programmatic] }
  program: { module: sales, function: secret }`;
const code = `
  snakes: { runtime: code, languages: [python] }
  scripts: { runtime: code, languages: [typescript, javascript] }`;
const more = `
  others: { runtime: code, languages: [python] }`;

/** Finds the entry with a manifest of these tools, and parses what it is in. */
async function find(tools: string, language: ProgramLanguage, flags: ProgramEntryFlags = {}) {
  const directory = await mkdtemp(join(tmpdir(), "program-entry-"));
  onTestFinished(() => rm(directory, { recursive: true }));
  await writeFile(join(directory, "manifest.yaml"), `version: 1\ntools:${tools}\n`);
  const home = join(directory, "home");
  await mkdir(home);
  const given = { with: directory, ...flags };
  const context = { environment: {} } as Parameters<typeof programEntry>[3];
  const { layout, name } = await programEntry(language, given, home, context);
  const { manifestPath: path } = layout;
  const { manifest } = parseManifest(await readFile(path), { path, profileNames });
  return { directory, layout, name, entry: manifest.tools.get(name), manifest };
}

describe("the entry of a program", () => {
  test("is the one that runs its language", async () => {
    const { name, layout, directory } = await find(callable + code, "python");
    expect({ name, path: layout.manifestPath }).toEqual({
      name: "snakes",
      path: join(directory, "manifest.yaml"),
    });
    expect(await find(callable + code, "javascript")).toMatchObject({ name: "scripts" });
  });

  test("is the one that is named", async () => {
    const { name } = await find(callable + code + more, "python", { as: "others" });
    expect(name).toBe("others");
  });

  test("is its own where the manifest has none: with all tools that allow programs", async () => {
    const { name, entry, manifest, layout, directory } = await find(callable, "python");
    expect(name).toBe("program_");
    expect(entry).toMatchObject({
      languages: ["python"],
      profile: "restrictive",
      gateway: { tools: ["sales:*", "upper"] },
    });
    expect(manifest.tools.get("upper")?.interpreter).toBe("3.10");
    expect(layout.pythonDir).toBe(directory);
  });

  test("is its own without a manifest: with no tools", async () => {
    const { entry } = await find("", "typescript", { with: undefined } as object);
    expect(entry).toMatchObject({ languages: ["typescript"], gateway: undefined });
  });

  test.each<[string, ProgramLanguage, ProgramEntryFlags, RegExp]>([
    [callable + code + more, "python", {}, /^choose an entry with --as; .*: snakes \(python\), /],
    [more, "javascript", {}, /^no entry of .* runs javascript; .*: others \(python\)$/],
    [code, "python", { as: "scripts" }, /^scripts does not run python; /],
    [callable, "python", { as: "query" }, /^query does not run python; .*: none$/],
    ["", "python", { with: "/nowhere" }, /^\/nowhere has no manifest.yaml$/],
    ["", "python", { with: undefined, as: "x" } as object, /^--as is for an entry of a manifest/],
    ["\n  x: { runtime: nothing }", "python", {}, /runtime/],
  ])("of %j in %s by %j is refused", async (tools, language, flags, problem) => {
    const found = find(tools, language, flags);
    await expect(found).rejects.toThrow(UsageError);
    await expect(found).rejects.toThrow(problem);
  });
});
