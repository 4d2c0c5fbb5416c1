/**
 * Search of tools in large catalogs.
 */
import { describe, expect } from "vitest";
import { Catalog } from "../../../worker/gateway/catalog.ts";
import { ToolSearch, indexBounds, maxResults } from "../../../worker/gateway/search.ts";
import { fc, test } from "../../support/properties/property.ts";

const never = new AbortController().signal;
const all = (): boolean => true;

describe("a search", () => {
  test("ranks ids before tags before descriptions", async () => {
    const search = new ToolSearch(
      new Catalog([
        { id: "a:tool", description: "Convert a table" },
        { id: "b:tool", tags: ["convert"], description: "Other" },
        { id: "c:convertTable", description: "Other" },
      ]),
    );
    const found = await search.search("convert", 10, all, never);
    expect(found.map(({ id }) => id)).toEqual(["c:convertTable", "b:tool", "a:tool"]);
  });

  test("has at most fifty results, equal ones by id", async () => {
    const ids = Array.from({ length: 200 }, (_, index) => `tool:a${index}`);
    const entries = ids.map((id) => ({ id, description: "Same" }));
    const found = await Promise.all(
      [entries, entries.toReversed()].map((some) =>
        new ToolSearch(new Catalog(some)).search("same", 1_000, all, never),
      ),
    );
    const expected = ids.toSorted().slice(0, maxResults);
    expect(found.map((one) => one.map(({ id }) => id))).toEqual([expected, expected]);
  });

  test("has equal results by id, whatever words they have", async () => {
    const words = ["sortd", "sortb", "sortc", "sorta"];
    const entries = words.map((description, at) => ({ id: `t${at}`, description }));
    const found = await new ToolSearch(new Catalog(entries)).search("sort", 4, all, never);
    expect(found.map(({ id }) => id)).toEqual(["t0", "t1", "t2", "t3"]);
  });

  test("fills its limit with allowed tools", async () => {
    const ids = Array.from({ length: 100 }, (_, index) => `tool:a${index}`);
    const search = new ToolSearch(new Catalog(ids.map((id) => ({ id, description: "Same" }))));
    const found = await search.search("same", 5, (id) => id.endsWith("9"), never);
    expect(found.map(({ id }) => id)).toEqual(
      ["19", "29", "39", "49", "59"].map((n) => `tool:a${n}`),
    );
  });

  test("lets the event loop continue between parts of a large catalog", async () => {
    const entries = Array.from({ length: 4 * indexBounds.tools }, (_, at) => ({
      id: `t${at}`,
      description: "Same",
    }));
    const search = new ToolSearch(new Catalog([...entries, { id: "special:same" }]));
    await search.search("nothing", 1, all, never);
    let turns = 0;
    let isOver = false;
    const count = (): void => {
      turns++;
      if (!isOver) setImmediate(count);
    };
    setImmediate(count);
    const found = await search.search("same", 50, all, never);
    isOver = true;
    expect(turns).toBeGreaterThanOrEqual(4);
    expect(found[0]?.id).toBe("special:same");
  });

  test.each([-1, 1.5, NaN, Infinity])("refuses the limit %d", async (limit) => {
    const search = new ToolSearch(new Catalog([]));
    const operation = search.search("", limit, all, never);
    await expect(operation).rejects.toMatchObject({ code: "INVALID_REQUEST" });
  });

  const words = fc.constantFrom("sales", "query", "Convert", "csv", "häuser", "数据", "__proto__");
  const entry = fc.array(words, { minLength: 1, maxLength: 30 }).map((some) => some.join(" "));
  test.prop([fc.array(entry, { maxLength: 30 }), words], { numRuns: 50 })(
    "finds each tool whose description has the word",
    async (descriptions, word) => {
      const entries = descriptions.map((description, at) => ({ id: `t${at + 100}`, description }));
      const found = await new ToolSearch(new Catalog(entries)).search(word, 50, all, never);
      const expected = entries.filter(({ description }) => description.includes(word));
      expect(found.map(({ id }) => id).toSorted()).toEqual(expected.map(({ id }) => id));
    },
  );
});
