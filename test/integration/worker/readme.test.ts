/**
 * The tools of the README do what it says, served by its manifest.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { parse } from "yaml";
import { type RigTool, startRig } from "../../support/rig.ts";

const readme = readFileSync(join(import.meta.dirname, "../../../README.md"), "utf8");

function block(language: string): string {
  const [, text] = new RegExp(`\`\`\`${language}\\n([^]*?)\`\`\``).exec(readme) ?? [];
  if (text === undefined) throw new Error(`README.md has no ${language}`);
  return text;
}

test("the tools of the README can be called as it says", async () => {
  const { tools } = parse(block("yaml")) as { tools: Record<string, RigTool> };
  await using rig = await startRig({
    tools,
    files: { "words.py": block("python") },
    nodeFiles: { "initials.ts": block("ts") },
  });
  expect(await rig.call("count_words", { text: "one two three" })).toMatchObject({
    kind: "success",
    toolResult: { status: "success", count: 3 },
    createdArtifacts: [{ filename: "words.txt", mimeType: "text/plain", sizeBytes: 13 }],
  });
  expect(await rig.call("initials", { name: "Ada Lovelace" })).toMatchObject({
    kind: "success",
    toolResult: { status: "success", initials: "AL" },
    createdArtifacts: [{ filename: "initials.txt", sizeBytes: 2 }],
  });
  expect(await rig.call("initials", { name: "" })).toMatchObject({
    kind: "error",
    code: "TOOL_ERROR",
    message: "There is no name",
  });
});
