/**
 * Limits of a program.
 */
import { describe, expect, test, vi } from "vitest";
import type { JsonObject } from "../../../worker/support/json/json.ts";
import { type CreateGateway, failureOf, never, open } from "./under-test.ts";

const plain = { toolId: "plain" };

export function describeLimits(create: CreateGateway): void {
  describe("a limit", () => {
    const limitOf = async (operation: Promise<unknown>): Promise<JsonObject | undefined> => {
      const { code, retryable, data } = await failureOf(operation);
      expect([code, retryable]).toEqual(["LIMIT_REACHED", false]);
      return data;
    };

    test("of calls counts failed and refused ones, too", async () => {
      await using under = await open(create, { maxToolCalls: 3 });
      const call = (id: string) => under.gateway.runTool(id, {}, never);
      await call("plain");
      await failureOf(call("math:fail"));
      await failureOf(call("hidden:add"));
      expect(await limitOf(call("plain"))).toEqual({ limit: "max_tool_calls", bound: 3 });
    });

    test("of the steps of a chain runs none of a longer one", async () => {
      await using under = await open(create, { maxChainSteps: 2 });
      const { gateway } = under;
      const add = { toolId: "math:add", args: { a: 1, b: 1 } };
      const chain = gateway.runChain([add, add, add], never);
      expect(await limitOf(chain)).toEqual({ limit: "max_chain_steps", bound: 2 });
      expect(under.tools.called).toEqual([]);
      expect((await gateway.runChain([add, add], never)).stepResults).toHaveLength(2);
    });

    test("of calls runs none of a chain that does not fit", async () => {
      await using under = await open(create, { maxToolCalls: 3 });
      const { gateway } = under;
      await gateway.runTool("plain", {}, never);
      const chain = gateway.runChain([plain, plain, plain], never);
      expect(await limitOf(chain)).toEqual({ limit: "max_tool_calls", bound: 3 });
      // The refused chain counts as one.
      await gateway.runTool("plain", {}, never);
      expect(await limitOf(gateway.runTool("plain", {}, never))).toBeDefined();
    });

    test("of calls gets back what a chain did not run", async () => {
      await using under = await open(create, { maxToolCalls: 4 });
      const { gateway } = under;
      await failureOf(gateway.runChain([{ toolId: "math:fail" }, plain, plain, plain], never));
      await gateway.runChain([plain, plain, plain], never);
      expect(await limitOf(gateway.runTool("plain", {}, never))).toBeDefined();
    });

    test("of lookups counts those of all kinds", async () => {
      await using under = await open(create, { maxLookups: 4 });
      const { gateway } = under;
      await gateway.searchTools("add", 1, never);
      await gateway.listNamespaces(never);
      await gateway.describeTool("plain", "full", never);
      await gateway.listToolExamples("plain", 1, never);
      const more = gateway.listNamespaces(never);
      expect(await limitOf(more)).toEqual({ limit: "max_lookups", bound: 4 });
      await gateway.runTool("plain", {}, never);
    });

    test("of concurrent calls lets the others wait", async () => {
      await using under = await open(create, { maxConcurrentCalls: 2 });
      const stop = new AbortController();
      const calls = Array.from({ length: 3 }, () =>
        under.gateway.runTool("text:wait", {}, stop.signal).catch(() => undefined),
      );
      await vi.waitFor(() => expect(under.tools.waiting).toBe(2));
      // Others are served meanwhile.
      await under.gateway.listNamespaces(never);
      expect(under.tools.waiting).toBe(2);
      stop.abort();
      await Promise.all(calls);
    });
  });
}
