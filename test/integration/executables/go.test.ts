/**
 * The example in Go, built and called.
 */
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { builtGoProgram } from "../../support/go-program.ts";
import { startRig } from "../../support/workers/rig.ts";

const sources = fileURLToPath(
  new URL("../../../examples/tools/executable/text-tools", import.meta.url),
);

test("the example in Go provides two tools", { tags: "full" }, async (context) => {
  const program = await builtGoProgram(context, sources);
  const kit = { runtime: "go", executable: "text-tools", tool_dir: "kit" } as const;
  await using rig = await startRig({
    tools: { kit: { ...kit, tools: ["word_count", "top_words"] }, other: kit },
    executables: { "kit/text-tools": program },
  });
  expect(await rig.call("word_count", { text: "to be or not to be" })).toMatchObject({
    kind: "success",
    toolResult: { words: 6 },
  });
  const answer = await rig.call("top_words", { text: "b a b c a b", count: 2 });
  expect(answer).toMatchObject({
    toolResult: { top: ["b", "a"] },
    createdArtifacts: [{ filename: "top-words.txt" }],
  });
  const file = { filename: "top-words.txt", version: 0 };
  const saved = await rig.store.open(rig.scope, file, new AbortController().signal);
  expect(await text(saved.body)).toBe("b\na");
  expect(await rig.call("other")).toMatchObject({
    kind: "error",
    code: "TOOL_ERROR",
    message: 'there is no tool "other"',
  });
});
