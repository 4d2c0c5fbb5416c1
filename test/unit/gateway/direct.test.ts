/**
 * What a gateway in this process does beyond the contract: records, errors, artifacts.
 */
import { describe, expect, test } from "vitest";
import { CallBudget } from "../../../worker/gateway/budget.ts";
import type { ToolCallRecord } from "../../../worker/gateway/call-records.ts";
import { Catalog } from "../../../worker/gateway/catalog.ts";
import { DirectGateway, type DirectOptions } from "../../../worker/gateway/direct.ts";
import type { Dispatch } from "../../../worker/gateway/dispatch.ts";
import { type FunctionTool, createFunctionGateway } from "../../../worker/gateway/functions.ts";
import { GatewayError, maxPieceBytes } from "../../../worker/gateway/gateway.ts";
import { defaultGatewayLimits } from "../../../worker/gateway/limits.ts";
import { InvocationError } from "../../../worker/protocol/errors.ts";
import { failureOf } from "../../conformance/gateway/under-test.ts";

const never = new AbortController().signal;
const catalog = new Catalog([{ id: "a:tool" }, { id: "b:tool" }]);

const gatewayOf = (dispatch: Dispatch, options: DirectOptions = {}): DirectGateway =>
  new DirectGateway(catalog, dispatch, options);

const nothing: Dispatch = async () => ({ structured: {}, artifacts: [], backend: "bubblewrap" });

describe("a record of a call", () => {
  const recorded = (records: readonly ToolCallRecord[]) =>
    records.map(({ toolId, outcome, op }) => [toolId, outcome, op]);

  test("has its facts, and no arguments", async () => {
    const records: ToolCallRecord[] = [];
    let nowMs = 1_000;
    const clock = { nowMs: () => nowMs, monotonicMs: () => nowMs, sleep: async () => undefined };
    const dispatch: Dispatch = async ({ callId, depth }) => {
      nowMs += 25;
      return { structured: { callId, depth }, artifacts: [], backend: "bubblewrap" };
    };
    const onCall = (record: ToolCallRecord) => void records.push(record);
    const budget = new CallBudget(undefined, { depth: 1, clock });
    const gateway = gatewayOf(dispatch, { onCall, clock, budget, newId: () => "id" });
    await gateway.runTool("a:tool", { secret: "x" }, never);
    expect(records).toEqual([
      {
        ...{ callId: "id", toolId: "a:tool", backend: "bubblewrap", outcome: "ok", op: undefined },
        ...{ startedAtMs: 1_000, durationMs: 25, depth: 2 },
        ...{ argsBytes: '{"secret":"x"}'.length, resultBytes: '{"callId":"id","depth":2}'.length },
      },
    ]);
  });

  test("is kept of failed, refused and aborted calls, and of each step", async () => {
    const records: ToolCallRecord[] = [];
    const controller = new AbortController();
    const dispatch: Dispatch = async ({ tool, args }) => {
      if (args["abort"] === true) controller.abort(new Error("not wanted"));
      if (tool.id === "b:tool") throw new InvocationError("TOOL_NOT_AVAILABLE", "It is gone");
      return { structured: {}, artifacts: [] };
    };
    const gateway = gatewayOf(dispatch, {
      onCall: (record) => void records.push(record),
      budget: new CallBudget({ ...defaultGatewayLimits, maxToolCalls: 5 }),
    });
    await failureOf(gateway.runChain([{ toolId: "a:tool" }, { toolId: "b:tool" }], never));
    await failureOf(gateway.runTool("\u001b[2J", {}, never));
    await expect(gateway.runTool("a:tool", { abort: true }, controller.signal)).rejects.toThrow();
    await gateway.runTool("a:tool", {}, never);
    await failureOf(gateway.runTool("a:tool", {}, never));
    expect(recorded(records)).toEqual([
      ["a:tool", "ok", undefined],
      ["b:tool", "TOOL_NOT_AVAILABLE", "resolve"],
      ['" [2J"', "NOT_ALLOWED", "resolve"],
      ["a:tool", "CANCELLED", "execute"],
      ["a:tool", "ok", undefined],
      ["a:tool", "LIMIT_REACHED", "resolve"],
    ]);
  });

  test("of a call that its gateway ended has the reason", async () => {
    const records: ToolCallRecord[] = [];
    const controller = new AbortController();
    const dispatch: Dispatch = async () => {
      controller.abort(new GatewayError("GATEWAY_CLOSED", "execute", "The channel is closed"));
      throw new Error("stopped");
    };
    const gateway = gatewayOf(dispatch, { onCall: (record) => void records.push(record) });
    await expect(gateway.runTool("a:tool", {}, controller.signal)).rejects.toThrow("closed");
    expect(recorded(records)).toEqual([["a:tool", "GATEWAY_CLOSED", "execute"]]);
  });
});

test("a request narrows the scope, and does not widen it", async () => {
  const gateway = gatewayOf(nothing, { allowed: ["a:*"], requested: ["b:*", "a:tool"] });
  const ids = (await gateway.searchTools("", 9, never)).map(({ id }) => id);
  expect(ids).toEqual(["a:tool"]);
  expect((await failureOf(gateway.runTool("b:tool", {}, never))).code).toBe("NOT_ALLOWED");
  const none = gatewayOf(nothing, { allowed: ["a:*"], requested: [] });
  expect(await none.listNamespaces(never)).toEqual([]);
});

test("a hundred tools that are not allowed end the program", async () => {
  const limits = { maxToolCalls: 1_000, maxLookups: 1_000, maxOperationsPerSecond: 100_000 };
  const budget = new CallBudget({ ...defaultGatewayLimits, ...limits });
  const gateway = gatewayOf(nothing, { budget, allowed: ["b:*"] });
  for (let count = 0; count < 33; count++) {
    await failureOf(gateway.runTool("a:tool", {}, never));
    await failureOf(gateway.describeTool("a:tool", "full", never));
    await failureOf(gateway.loadArtifact({ filename: "a", offset: 0, length: 1 }, never));
  }
  expect(budget.ended.aborted).toBe(false);
  await failureOf(gateway.runChain([{ toolId: "a:tool" }], never));
  await expect(gateway.runTool("b:tool", {}, never)).rejects.toBe(budget.ended.reason);
});

describe("an error of a call", () => {
  const errorOf = (error: Error): Promise<GatewayError> =>
    failureOf(gatewayOf(() => Promise.reject(error)).runTool("a:tool", {}, never));

  test("of the invoker keeps what it says", async () => {
    const limit = { limit: "memoryBytes", bound: 10, peak: 11 } as const;
    const error = new InvocationError("EXECUTION_ERROR", "Too much", { limit });
    expect(await errorOf(error)).toMatchObject({
      ...{ code: "EXECUTION_ERROR", op: "execute", message: "Too much", retryable: false },
      data: { limit: "memory", bound: 10, peak: 11, unit: "bytes" },
    });
    const full = new InvocationError("RESOURCE_EXHAUSTED", "Later");
    expect(await errorOf(full)).toMatchObject({ retryable: true, data: undefined });
    const wrong = new InvocationError("INVALID_REQUEST", "No");
    expect(await errorOf(wrong)).toMatchObject({ op: "validate_input" });
  });

  test("that nobody foresaw says nothing", async () => {
    const cause = new Error("password");
    const error = await errorOf(cause);
    expect(error).toMatchObject({ code: "INTERNAL_ERROR", cause });
    expect(error.message).not.toMatch(/password/);
  });

  test("of a function is its own", async () => {
    const call = async (run: FunctionTool["run"]): Promise<GatewayError> =>
      failureOf(createFunctionGateway([{ id: "f", run }]).runTool("f", {}, never));
    const thrown = await call(() => {
      throw new RangeError("too far");
    });
    expect(thrown).toMatchObject({ code: "EXECUTION_ERROR", message: "RangeError: too far" });
    const list = await call((() => [1]) as unknown as FunctionTool["run"]);
    expect(list).toMatchObject({ code: "EXECUTION_ERROR", op: "validate_output" });
    const large = await call(() => ({ x: "x".repeat(10_000_000) }));
    expect(large).toMatchObject({ code: "RESOURCE_EXHAUSTED", op: "validate_output" });
  });
});

test("the results of a chain have a bound together", async () => {
  const structured = { x: "x".repeat(6_000_000) };
  const gateway = gatewayOf(async () => ({ structured, artifacts: [] }));
  const error = await failureOf(
    gateway.runChain([{ toolId: "a:tool" }, { toolId: "a:tool" }], never),
  );
  expect(error).toMatchObject({ code: "RESOURCE_EXHAUSTED", op: "validate_output" });
  expect(error.stepResults?.map((step) => step.error?.code)).toEqual([
    undefined,
    "RESOURCE_EXHAUSTED",
  ]);
});

test("artifacts are those of the last step", async () => {
  const artifact = { filename: "a", version: 0, mimeType: "text/plain", sizeBytes: 1 };
  const gateway = gatewayOf(async ({ tool }) => ({
    structured: {},
    artifacts: [{ ...artifact, filename: tool.id, description: "not for programs" }],
  }));
  const chain = await gateway.runChain([{ toolId: "a:tool" }, { toolId: "b:tool" }], never);
  expect(chain.artifacts).toEqual([{ ...artifact, filename: "b:tool" }]);
  expect(chain.stepResults[0]!.artifacts).toEqual([{ ...artifact, filename: "a:tool" }]);
});

describe("an artifact", () => {
  const facts = { version: 1, mimeType: "text/plain", sizeBytes: 3 };
  const piece = { filename: "a", offset: 0, length: 10 };

  test("is loaded in pieces, within the budget", async () => {
    const budget = new CallBudget({ ...defaultGatewayLimits, maxArtifactBytes: 12 });
    const bytes = Buffer.from("abc");
    const gateway = gatewayOf(nothing, { budget, loadArtifact: async () => ({ bytes, ...facts }) });
    expect(await gateway.loadArtifact(piece, never)).toEqual({ bytes, ...facts });
    // Three bytes came: nine are left.
    expect(await failureOf(gateway.loadArtifact(piece, never))).toMatchObject({
      ...{ code: "LIMIT_REACHED", data: { limit: "max_artifact_bytes", bound: 12 } },
    });
    await gateway.loadArtifact({ ...piece, length: 9 }, never);
  });

  test.each([
    { offset: -1 },
    { offset: 0.5 },
    { length: 0 },
    { length: maxPieceBytes + 1 },
    { length: NaN },
  ])("is not loaded with %j", async (wrong) => {
    const gateway = gatewayOf(nothing, {
      loadArtifact: async () => ({ bytes: Buffer.of(), ...facts }),
    });
    const error = await failureOf(gateway.loadArtifact({ ...piece, ...wrong }, never));
    expect(error.code).toBe("INVALID_REQUEST");
  });

  test("is not there without a store", async () => {
    const error = await failureOf(gatewayOf(nothing).loadArtifact(piece, never));
    expect(error.code).toBe("NOT_ALLOWED");
  });
});
