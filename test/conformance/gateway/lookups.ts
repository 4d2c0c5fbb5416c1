/**
 * Search, lists and documents of tools.
 */
import { describe, expect, test } from "vitest";
import { type CreateGateway, failureOf, never, open } from "./under-test.ts";

export function describeLookups(create: CreateGateway): void {
  describe("a search", () => {
    test("without words lists the allowed tools by id, up to its limit", async () => {
      await using under = await open(create);
      const ids = async (limit: number): Promise<readonly string[]> =>
        (await under.gateway.searchTools("", limit, never)).map(({ id }) => id);
      const all = ["math:add", "math:fail", "plain", "text:echo", "text:scribble", "text:wait"];
      expect(await ids(10)).toEqual(all);
      expect(await ids(5)).toEqual(all.slice(0, 5));
      expect(await ids(0)).toEqual([]);
    });

    test.each([
      ["the id", "ADD"],
      ["a tag", "arithmetic"],
      ["the description", "numbers"],
      ["a beginning", "arith"],
      ["a misspelt word", "arithmetik"],
    ])("finds a tool by %s", async (_, query) => {
      await using under = await open(create);
      expect(await under.gateway.searchTools(query, 10, never)).toEqual([
        {
          ...{ id: "math:add", name: "add", namespace: "math" },
          ...{ shortDescription: "Add two numbers.", tags: ["arithmetic"] },
        },
      ]);
    });

    test("gives results that belong to the caller", async () => {
      await using under = await open(create);
      const [first] = await under.gateway.searchTools("add", 1, never);
      Object.assign(first!, { name: "changed" });
      (first!.tags as string[]).push("changed");
      const [again] = await under.gateway.searchTools("add", 1, never);
      expect(again).toMatchObject({ name: "add", tags: ["arithmetic"] });
    });

    test("finds no tool by the names that every object has", async () => {
      await using under = await open(create);
      for (const query of ["constructor", "__proto__", "\u001b[31m", "😀 toString"]) {
        expect(await under.gateway.searchTools(query, 5, never)).toEqual([]);
      }
    });

    test("has a bound for characters and words, and names it", async () => {
      await using under = await open(create);
      const search = (query: string) => under.gateway.searchTools(query, 5, never);
      expect(await search("add ".repeat(8).padEnd(256))).toHaveLength(1);
      expect(await failureOf(search("x".repeat(257)))).toMatchObject({
        ...{ code: "INVALID_REQUEST", op: "validate_input" },
        message: "A query has at most 256 characters; this one has 257",
      });
      const { message } = await failureOf(search("add ".repeat(9)));
      expect(message).toBe("A query has at most 8 words; this one has 9");
    });
  });

  test("namespaces are those of the allowed tools", async () => {
    await using under = await open(create);
    expect(await under.gateway.listNamespaces(never)).toEqual(["math", "text"]);
  });

  describe("a document", () => {
    test("says more at each level", async () => {
      await using under = await open(create);
      const document = (level: "summary" | "schema" | "full") =>
        under.gateway.describeTool("math:add", level, never);
      const named = { id: "math:add", name: "add", namespace: "math" };
      const summary = { ...named, summary: "Add two numbers." };
      expect(await document("summary")).toEqual(summary);
      const { parameters, returns } = under.tools.list[0]!;
      expect(await document("schema")).toEqual({ ...summary, parameters, returns });
      const { examples } = under.tools.list[0]!;
      const notes = "Add two numbers.\n\nOf any size.";
      expect(await document("full")).toEqual({ ...summary, parameters, returns, notes, examples });
    });

    test("belongs to the caller", async () => {
      await using under = await open(create);
      const first = await under.gateway.describeTool("math:add", "full", never);
      const before = structuredClone(first);
      Object.assign(first.parameters!, { type: "string" });
      Object.assign(first.examples![0]!.args, { a: 100 });
      expect(await under.gateway.describeTool("math:add", "full", never)).toEqual(before);
    });

    test("has as many examples as are asked for", async () => {
      await using under = await open(create);
      const examples = async (max: number) =>
        (await under.gateway.listToolExamples("math:add", max, never)).map(({ args }) => args);
      expect(await examples(0)).toEqual([]);
      expect(await examples(1)).toEqual([{ a: 1, b: 2 }]);
      expect(await examples(9)).toEqual([
        { a: 1, b: 2 },
        { a: 0, b: 0 },
      ]);
    });
  });

  test("a tool that is not allowed is not there", async () => {
    await using under = await open(create);
    const { gateway } = under;
    const texts = async (id: string): Promise<readonly string[]> => {
      const failures = await Promise.all([
        failureOf(gateway.describeTool(id, "summary", never)),
        failureOf(gateway.listToolExamples(id, 1, never)),
        failureOf(gateway.runTool(id, {}, never)),
        failureOf(gateway.runChain([{ toolId: id }], never)),
      ]);
      return failures.map(({ code, op, retryable, data, message }) =>
        JSON.stringify([code, op, retryable, data, message.replace(id, "ID")]),
      );
    };
    const hidden = await texts("hidden:add");
    expect(hidden[0]).toMatch(/^\["NOT_ALLOWED","resolve",false/);
    expect(await texts("nonexistent:tool")).toEqual(hidden);
    expect(under.tools.called).toEqual([]);
  });
}
