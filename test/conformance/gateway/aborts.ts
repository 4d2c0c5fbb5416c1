/**
 * Operations that are aborted.
 */
import { describe, expect, test, vi } from "vitest";
import type { ToolGateway } from "../../../worker/gateway/gateway.ts";
import { type CreateGateway, never, open } from "./under-test.ts";

type Operation = (gateway: ToolGateway, signal: AbortSignal) => Promise<unknown>;

const operations: readonly (readonly [string, Operation])[] = [
  ["a search", (gateway, signal) => gateway.searchTools("add", 5, signal)],
  ["a list of namespaces", (gateway, signal) => gateway.listNamespaces(signal)],
  ["a document", (gateway, signal) => gateway.describeTool("math:add", "full", signal)],
  ["a list of examples", (gateway, signal) => gateway.listToolExamples("math:add", 1, signal)],
  ["a call", (gateway, signal) => gateway.runTool("math:add", { a: 1, b: 2 }, signal)],
  ["a chain", (gateway, signal) => gateway.runChain([{ toolId: "plain" }], signal)],
];

export function describeAborts(create: CreateGateway): void {
  describe("an abort", () => {
    test.each(operations)("before %s rejects with its reason", async (_, operation) => {
      await using under = await open(create);
      const reason = new Error("not wanted");
      await expect(operation(under.gateway, AbortSignal.abort(reason))).rejects.toBe(reason);
      expect(under.tools.called).toEqual([]);
    });

    test.each(operations)("right after the start of %s leaves the gateway well", async (_, run) => {
      await using under = await open(create);
      const controller = new AbortController();
      const reason = new Error("not wanted");
      const operation = run(under.gateway, controller.signal);
      controller.abort(reason);
      await expect(operation).rejects.toBe(reason);
      expect(await run(under.gateway, never)).toBeDefined();
    });

    test.each<readonly [string, Operation]>([
      ["call", (gateway, signal) => gateway.runTool("text:wait", {}, signal)],
      [
        "chain",
        (gateway, signal) =>
          gateway.runChain(
            [{ toolId: "text:wait" }, { toolId: "math:add", args: { a: 1, b: 1 } }],
            signal,
          ),
      ],
    ])("of a running %s stops it, and only it", async (_, operation) => {
      await using under = await open(create);
      const [one, other] = [new AbortController(), new AbortController()];
      const running = operation(under.gateway, one.signal);
      const others = operation(under.gateway, other.signal);
      await vi.waitFor(() => expect(under.tools.waiting).toBe(2));
      const reason = new Error("not wanted");
      one.abort(reason);
      await expect(running).rejects.toBe(reason);
      await vi.waitFor(() => expect(under.tools.waiting).toBe(1));
      other.abort(reason);
      await expect(others).rejects.toBe(reason);
      await vi.waitFor(() => expect(under.tools.waiting).toBe(0));
      expect(under.tools.called).toEqual([]);
    });

    test("of a call that waits for others never starts it", async () => {
      await using under = await open(create, { maxConcurrentCalls: 1, maxToolCalls: 3 });
      const [first, second] = [new AbortController(), new AbortController()];
      const running = under.gateway.runTool("text:wait", {}, first.signal);
      await vi.waitFor(() => expect(under.tools.waiting).toBe(1));
      const waiting = under.gateway.runTool("math:add", { a: 1, b: 1 }, second.signal);
      const reason = new Error("not wanted");
      second.abort(reason);
      await expect(waiting).rejects.toBe(reason);
      first.abort(reason);
      await expect(running).rejects.toBe(reason);
      expect(under.tools.called).toEqual([]);
      // It did not count: two of three calls are left.
      await under.gateway.runTool("plain", {}, never);
      await under.gateway.runTool("plain", {}, never);
    });
  });
}
