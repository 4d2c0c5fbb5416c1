/**
 * Chains of calls.
 */
import { describe, expect, test } from "vitest";
import type { ChainStep } from "../../../worker/gateway/gateway.ts";
import { type CreateGateway, deepFreeze, failureOf, never, open } from "./under-test.ts";

export function describeChains(create: CreateGateway): void {
  describe("a chain", () => {
    test("without steps has an empty result", async () => {
      await using under = await open(create);
      const empty = { structured: {}, artifacts: [], stepResults: [] };
      expect(await under.gateway.runChain([], never)).toEqual(empty);
    });

    test("hands each result to the step that wants it", async () => {
      await using under = await open(create);
      const steps = deepFreeze([
        { toolId: "math:add", args: { a: 1, b: 2 } },
        { toolId: "math:add", args: { a: 10, b: 20 }, usePrevious: true },
        { toolId: "math:add", args: { a: 5, b: 5 } },
        { toolId: "text:echo", usePrevious: true },
      ] satisfies ChainStep[]);
      const result = await under.gateway.runChain(steps, never);
      expect(result).toMatchObject({ structured: { args: { previous: { sum: 10 } } } });
      expect(result.stepResults).toEqual([
        { toolId: "math:add", structured: { sum: 3 }, artifacts: [] },
        { toolId: "math:add", structured: { sum: 33 }, artifacts: [] },
        { toolId: "math:add", structured: { sum: 10 }, artifacts: [] },
        { toolId: "text:echo", structured: { args: { previous: { sum: 10 } } }, artifacts: [] },
      ]);
    });

    test("puts the previous result over a given one, and has none for the first step", async () => {
      await using under = await open(create);
      const args = { previous: "given" };
      const { stepResults } = await under.gateway.runChain(
        [
          { toolId: "text:echo", args, usePrevious: true },
          { toolId: "plain" },
          { toolId: "text:echo", args, usePrevious: true },
        ],
        never,
      );
      expect(stepResults[0]!.structured).toEqual({ args });
      expect(stepResults[2]!.structured).toEqual({ args: { previous: { plain: null } } });
    });

    test("stops at the first error, with the results so far", async () => {
      await using under = await open(create);
      const add = { toolId: "math:add", args: { a: 1, b: 1 } };
      const failure = await failureOf(
        under.gateway.runChain([add, { toolId: "math:fail" }, add], never),
      );
      expect(failure).toMatchObject({ code: "TOOL_ERROR", op: "execute", message: "It failed" });
      const error = { code: "TOOL_ERROR", message: "It failed", retryable: true };
      expect(failure.stepResults).toEqual([
        { toolId: "math:add", structured: { sum: 2 }, artifacts: [] },
        { toolId: "math:fail", error: { ...error, data: { why: "it does" } } },
      ]);
      expect(under.tools.called).toEqual(["math:add", "math:fail"]);
    });

    test("gives copies that share nothing", async () => {
      await using under = await open(create);
      const result = await under.gateway.runChain([{ toolId: "plain" }], never);
      Object.assign(result.structured, { plain: "changed" });
      expect(result.stepResults[0]!.structured).toEqual({ plain: null });
    });
  });
}
