/**
 * The text of a new tool and of its test: small, complete, and about the same thing in each
 * language.
 */
import type { Runtime } from "../../worker/manifest/manifest.ts";
import type { ToolNames } from "./names.ts";

/** Arguments that every new tool understands. */
export const exampleArgs = `{"text": "one two three"}`;

/** Files that a directory of Node tools needs once, by name. */
export const nodeCompanions = {
  /** Tells Node, whatever stands in directories above, that the files are modules. */
  "package.json": `{
  "private": true,
  "type": "module"
}
`,
  /** Tells editors and tsc what of TypeScript runs as it is. */
  "tsconfig.json": `{
  "compilerOptions": {
    "target": "esnext",
    "module": "nodenext",
    "types": ["node"],
    "strict": true,
    "noEmit": true,
    "allowImportingTsExtensions": true,
    "erasableSyntaxOnly": true,
    "verbatimModuleSyntax": true
  }
}
`,
} as const;

/** Files of a new tool, by name. */
export interface ToolFiles {
  readonly tool: { readonly name: string; readonly text: string };
  readonly test: { readonly name: string; readonly text: string };
}

/** The files of a new tool in a language. */
export function toolFiles(runtime: Runtime, names: ToolNames): ToolFiles {
  const { file } = names;
  return runtime === "python"
    ? {
        tool: { name: `${file}.py`, text: pythonTool(names) },
        test: { name: `test_${file}.py`, text: pythonTest(names) },
      }
    : {
        tool: { name: `${file}.ts`, text: nodeTool(names) },
        test: { name: `${file}.test.ts`, text: nodeTest(names) },
      };
}

function pythonTool({ callable }: ToolNames): string {
  return `"""A tool that counts words. Arguments come by name; a dict goes back."""

from secure_tool_runtime import ToolContext, ToolError


def ${callable}(ctx: ToolContext, text: str) -> dict:
    """Counts the words of a text and saves them, one in each line."""
    if not text:
        raise ToolError("There is no text to count")
    ctx.send_status("Counting...")
    words = text.split()
    ctx.save_artifact_text("words.txt", "\\n".join(words))
    return {"status": "success", "count": len(words)}
`;
}

function pythonTest({ file, callable }: ToolNames): string {
  return `"""Tests of ${file}.py, without a worker or a sandbox."""

import os
import tempfile
import unittest

import ${file}
from secure_tool_runtime import ToolContext, ToolError


class TestTool(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.output_dir = directory.name
        self.ctx = ToolContext(output_dir=directory.name)

    def test_counts_the_words(self):
        result = ${file}.${callable}(self.ctx, text="one two three")
        self.assertEqual(result, {"status": "success", "count": 3})

    def test_saves_one_word_in_each_line(self):
        ${file}.${callable}(self.ctx, text="one two")
        with open(os.path.join(self.output_dir, "words.txt")) as saved:
            self.assertEqual(saved.read(), "one\\ntwo")

    def test_says_that_there_is_no_text(self):
        with self.assertRaisesRegex(ToolError, "no text"):
            ${file}.${callable}(self.ctx, text="")


if __name__ == "__main__":
    unittest.main()
`;
}

function nodeTool({ callable }: ToolNames): string {
  return `/**
 * A tool that counts words. Arguments come as one object; an object goes back.
 */
import { type ToolContext, ToolError } from "secure-tool-runtime/tool";

/** Counts the words of a text and saves them, one in each line. */
export async function ${callable}({ text }: { text: string }, ctx: ToolContext): Promise<object> {
  if (!text) throw new ToolError("There is no text to count");
  await ctx.sendStatus("Counting...");
  const words = text.split(/\\s+/).filter((word) => word !== "");
  await ctx.saveArtifactText("words.txt", words.join("\\n"));
  return { status: "success", count: words.length };
}
`;
}

function nodeTest({ file, callable }: ToolNames): string {
  return `/**
 * Tests of ${file}.ts, without a worker or a sandbox.
 */
import assert from "node:assert/strict";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { ToolError, createToolContext } from "secure-tool-runtime/tool";
import * as tool from "./${file}.ts";

async function newContext(t: TestContext) {
  const outputDir = await mkdtemp(join(tmpdir(), "tool-test-"));
  t.after(() => rm(outputDir, { recursive: true }));
  return { outputDir, ctx: createToolContext({ outputDir }) };
}

test("counts the words", async (t) => {
  const { ctx } = await newContext(t);
  const result = await tool.${callable}({ text: "one two three" }, ctx);
  assert.deepEqual(result, { status: "success", count: 3 });
});

test("saves one word in each line", async (t) => {
  const { outputDir, ctx } = await newContext(t);
  await tool.${callable}({ text: "one two" }, ctx);
  assert.equal(await readFile(join(outputDir, "words.txt"), "utf8"), "one\\ntwo");
});

test("says that there is no text", async (t) => {
  const { ctx } = await newContext(t);
  await assert.rejects(tool.${callable}({ text: "" }, ctx), ToolError);
});
`;
}
