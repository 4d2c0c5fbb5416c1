/**
 * What a gateway over functions has for its users: many programs, one after the other.
 */
import { describe, expect, test } from "vitest";
import type { ToolGateway } from "../../../worker/gateway/gateway.ts";
import { CountedGateway } from "../../../worker/runtime/api/counted-gateway.ts";
import { createFunctionGateway } from "../../../worker/runtime/api/function-gateway.ts";
import { systemClock } from "../../../worker/support/clock.ts";
import { maxRefusals } from "../../../worker/gateway/limits.ts";
import { defaultGatewayLimits } from "../../../worker/protocol/tool-calls/limits.ts";
import { failureOf } from "../../conformance/gateway/under-test.ts";

const never = new AbortController().signal;
const tools = [
  { id: "math:add", run: ({ a, b }: Record<string, unknown>) => ({ sum: Number(a) + Number(b) }) },
  { id: "math:next", run: ({ previous }: Record<string, unknown>) => ({ previous }) as never },
];

describe("a gateway over functions", () => {
  test("has no limits of its own: each execution has some", async () => {
    const gateway = createFunctionGateway(tools);
    const { maxToolCalls, maxChainSteps, maxLookups } = defaultGatewayLimits;
    for (let n = 0; n <= maxToolCalls; n++)
      expect((await gateway.runTool("math:add", { a: n, b: 1 }, never)).structured["sum"]).toBe(
        n + 1,
      );
    const steps = Array.from({ length: maxChainSteps + 1 }, () => ({ toolId: "math:next" }));
    expect((await gateway.runChain(steps, never)).stepResults).toHaveLength(steps.length);
    for (let n = 0; n <= maxLookups; n++) await gateway.describeTool("math:add", "full", never);
  });

  test("serves later programs, whatever it refused to earlier ones", async () => {
    const gateway = createFunctionGateway(tools);
    for (let n = 0; n <= maxRefusals; n++)
      expect((await failureOf(gateway.runTool("math:no", {}, never))).code).toBe("NOT_ALLOWED");
    expect((await gateway.runTool("math:add", { a: 1, b: 1 }, never)).structured).toEqual({
      sum: 2,
    });
  });

  test("is named in the records of calls that it ran", async () => {
    const limits = { maxToolCalls: Infinity, maxChainSteps: Infinity };
    const recorded = async (gateway: ToolGateway) => {
      const counted = new CountedGateway(gateway, limits, systemClock, never);
      await counted.runTool("math:add", { a: 1, b: 1 }, never);
      await expect(counted.runTool("math:no", {}, never)).rejects.toThrow();
      const steps = [{ toolId: "math:next" }, { toolId: "math:no" }];
      await expect(counted.runChain(steps, never)).rejects.toThrow();
      return counted.records.map(({ toolId, backendKind }) => [toolId, backendKind]);
    };
    expect(await recorded(createFunctionGateway(tools))).toEqual([
      ...[
        ["math:add", "function"],
        ["math:no", undefined],
      ],
      ...[
        ["math:next", "function"],
        ["math:no", undefined],
      ],
    ]);
    const untold = Object.assign(createFunctionGateway(tools), { backendKind: undefined });
    const kinds = (await recorded(untold as unknown as ToolGateway)).map(([, kind]) => kind);
    expect(kinds).toEqual([undefined, undefined, undefined, undefined]);
  });

  test("refuses a tool that is there twice when it is made", () => {
    expect(() => createFunctionGateway([...tools, ...tools])).toThrow(TypeError);
  });
});
