/**
 * What agents are told of tools that code may call.
 */
import { describe, expect } from "vitest";
import { Catalog, type CatalogEntry } from "../../../../worker/gateway/catalog.ts";
import { maxPromptLength, promptOf } from "../../../../worker/gateway/stubs/prompt.ts";
import { isDeceptive } from "../../../../worker/support/text/deceptive.ts";
import { fc, test } from "../../../support/properties/property.ts";
import { anyEntries, breakouts, manyTools, salesQuery } from "./any-entries.ts";

const languages = ["python", "typescript", "javascript"] as const;

const promptFor = (entries: readonly CatalogEntry[]): string =>
  promptOf([...new Catalog(entries).tools], {
    ...{ languages, runsPrograms: true, description: breakouts.join("\n") },
  });

/** The lines of tools. */
const linesOf = (prompt: string): readonly string[] =>
  prompt.split("\n").filter((line) => line.startsWith("- "));

describe("a prompt", () => {
  test("says how each language calls tools, and has a line for each tool", () => {
    const prompt = promptFor([salesQuery, { id: "plain" }]);
    expect(linesOf(prompt)).toEqual([
      "- plain(…)",
      '- sales:query(region, limit?): "Rows of sales."',
    ]);
    expect(prompt).toContain('Python: `result = await tools.call("ID", {"name": value})`');
    expect(prompt).toContain("TypeScript: `const result");
    expect(prompt).not.toContain("tools.search");
    const description = "Reports\nsales.\n\nOf its own.";
    const plain = promptOf([], { languages: ["python"], runsPrograms: false, description });
    expect(plain).toMatch(/^Reports sales\.\nCode can call/);
    expect(plain).not.toContain("TypeScript");
  });

  test.each(["Runs it.", undefined])("of programs says what they have, after %j", (description) => {
    const prompt = promptOf([], { languages, runsPrograms: true, description });
    const words = [
      "`inputs`",
      "`display(value)`",
      "`__out`",
      "last expression",
      "`await`",
      "prints",
    ];
    const line = prompt.split("\n")[description === undefined ? 0 : 1];
    for (const word of words) expect(line).toContain(word);
  });

  test(
    "of many tools has the first ones, shortens them, and names the search",
    { tags: "full" },
    () => {
      const prompt = promptFor(manyTools);
      const lines = linesOf(prompt);
      expect(prompt.length).toBeLessThanOrEqual(maxPromptLength);
      expect(prompt.length).toBeGreaterThan(maxPromptLength - 150);
      expect(lines.at(-1)).toBe(
        `- and ${manyTools.length - lines.length + 1} more: \`await tools.search("words")\` finds tools by words.`,
      );
      expect(lines[0]).toMatch(
        /^- space0:tool0\(a\?, file\?\): "The tool 0\. It has much .{0,40}…"$/,
      );
    },
  );

  test.each(breakouts)("keeps %j in the line of its tool", { tags: "promise-G6" }, (text) => {
    const schema = { type: "object", properties: { [`${text}\n- x`]: {}, "a\u202e": {} } };
    const prompt = promptFor([{ id: "a:b", description: `x ${text}`, parameters: schema }]);
    expect(linesOf(prompt)).toHaveLength(1);
    expect(prompt.split("\n").filter(isDeceptive)).toEqual([]);
    expect(prompt.isWellFormed()).toBe(true);
  });

  test.prop([fc.array(anyEntries, { maxLength: 30 })], { numRuns: 50 })(
    "of any tools is short, and has a line for each",
    (lists) => {
      const entries = lists.flatMap((list, index) =>
        list.map((entry) => ({ ...entry, id: `n${index}:${entry.id.replace(":", ".")}` })),
      );
      const unique = [...new Map(entries.map((entry) => [entry.id, entry])).values()];
      const prompt = promptFor(unique);
      expect(prompt.length).toBeLessThanOrEqual(maxPromptLength);
      const lines = linesOf(prompt);
      const more = Number(/ and (\d+) more/.exec(lines.at(-1) ?? "")?.[1] ?? 0);
      expect(lines.length - (more > 0 ? 1 : 0) + more).toBe(unique.length);
      expect(prompt.split("\n").filter(isDeceptive)).toEqual([]);
    },
  );
});
