/**
 * Single calls.
 */
import { describe, expect } from "vitest";
import type { JsonObject } from "../../../worker/support/json/json.ts";
import { fc, test } from "../../support/properties/property.ts";
import { type CreateGateway, deepFreeze, failureOf, never, open } from "./under-test.ts";

export function describeCalls(create: CreateGateway): void {
  describe("a call", () => {
    test("gets the result", async () => {
      await using under = await open(create);
      expect(await under.gateway.runTool("math:add", { a: 1, b: 2 }, never)).toEqual({
        structured: { sum: 3 },
        artifacts: [],
      });
    });

    test("leaves its arguments alone, and gives a copy of its own", async () => {
      await using under = await open(create);
      const args = deepFreeze({ list: [1, 2, 3] });
      const [one, other] = await Promise.all([
        under.gateway.runTool("text:scribble", args, never),
        under.gateway.runTool("text:scribble", args, never),
      ]);
      expect(one.structured).toEqual({ list: [1, 2, 3, 4], isChanged: true });
      (one.structured["list"] as number[]).push(5);
      expect(other.structured["list"]).toEqual([1, 2, 3, 4]);
      expect(args).toEqual({ list: [1, 2, 3] });
    });

    test("keeps the name __proto__ a name", async () => {
      await using under = await open(create);
      const text = '{"__proto__":{"isAdmin":true},"constructor":{"prototype":{"isAdmin":true}}}';
      const args = deepFreeze(JSON.parse(text) as JsonObject);
      const { structured } = await under.gateway.runTool("text:echo", args, never);
      expect(JSON.stringify(structured)).toBe(`{"args":${text}}`);
      expect(({} as { isAdmin?: boolean }).isAdmin).toBeUndefined();
    });

    test.prop([fc.dictionary(fc.string(), fc.jsonValue())], { numRuns: 20 })(
      "takes any JSON there and back",
      async (args) => {
        await using under = await open(create);
        const { structured } = await under.gateway.runTool("text:echo", args as JsonObject, never);
        expect(JSON.stringify(structured)).toBe(JSON.stringify({ args }));
      },
    );

    test("fails with code, operation, data and whether to try again", async () => {
      await using under = await open(create);
      expect(await failureOf(under.gateway.runTool("math:fail", {}, never))).toMatchObject({
        ...{ code: "TOOL_ERROR", op: "execute", message: "It failed", retryable: true },
        data: { why: "it does" },
      });
    });

    test("with arguments that are no JSON object is refused", async () => {
      await using under = await open(create);
      const cycle: Record<string, unknown> = {};
      cycle["self"] = cycle;
      for (const args of [cycle, [], "text", null, { big: 1n }]) {
        const call = under.gateway.runTool("text:echo", args as unknown as JsonObject, never);
        expect(await failureOf(call)).toMatchObject({
          ...{ code: "INVALID_REQUEST", op: "validate_input" },
        });
      }
      expect(await under.gateway.runTool("plain", {}, never)).toBeDefined();
    });

    test("is one of fifty, each with its own result", async () => {
      await using under = await open(create);
      const sums = await Promise.all(
        Array.from({ length: 50 }, async (_, a) => {
          const { structured } = await under.gateway.runTool("math:add", { a, b: 1 }, never);
          return structured["sum"];
        }),
      );
      expect(sums).toEqual(Array.from({ length: 50 }, (_, a) => a + 1));
    });
  });
}
