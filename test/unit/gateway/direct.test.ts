/**
 * What a gateway in this process does beyond the contract: records, errors, artifacts.
 */
import { describe, expect, test } from "vitest";
import { CallBudget } from "../../../worker/gateway/budget.ts";
import type { ToolCallRecord } from "../../../worker/gateway/call-records.ts";
import { Catalog } from "../../../worker/gateway/catalog.ts";
import {
  DirectGateway,
  type DirectOptions,
  type LoadArtifact,
} from "../../../worker/gateway/direct.ts";
import { type Dispatch, errorOfRun } from "../../../worker/gateway/dispatch.ts";
import { type FunctionTool, createFunctionGateway } from "../../../worker/gateway/functions.ts";
import { GatewayError, type PieceRequest, maxPieceBytes } from "../../../worker/gateway/gateway.ts";
import {
  type GatewayLimits,
  defaultGatewayLimits,
} from "../../../worker/protocol/tool-calls/limits.ts";
import { InvocationError } from "../../../worker/protocol/errors.ts";
import type { JsonObject } from "../../../worker/support/json/json.ts";
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

  test("of a failed call has what its error says of it", async () => {
    const records: ToolCallRecord[] = [];
    const dispatch: Dispatch = async ({ tool }) => {
      const op = tool.id === "b:tool" ? undefined : "select_backend";
      const error = new InvocationError("TOOL_NOT_AVAILABLE", "It is gone", { op });
      throw errorOfRun(error, tool.id === "b:tool" ? "bubblewrap" : undefined);
    };
    const gateway = gatewayOf(dispatch, { onCall: (record) => void records.push(record) });
    const failure = await failureOf(gateway.runTool("a:tool", {}, never));
    expect(failure).toMatchObject({ op: "select_backend", message: "It is gone", retryable: true });
    await failureOf(gateway.runTool("b:tool", {}, never));
    expect(records).toMatchObject([
      { backend: undefined, op: "select_backend" },
      { backend: "bubblewrap", op: "resolve" },
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

test("arguments are not read of calls that the budget refuses", async () => {
  let reads = 0;
  const args = {
    get text() {
      reads++;
      return "x";
    },
  };
  const gatewayWith = (limits: Partial<GatewayLimits>) =>
    gatewayOf(nothing, { budget: new CallBudget({ ...defaultGatewayLimits, ...limits }) });
  const run = (gateway: DirectGateway) => gateway.runTool("a:tool", args, never);
  await failureOf(run(gatewayWith({ maxToolCalls: 0 })));
  const busy = gatewayWith({ maxOperationsPerSecond: 0.25 });
  await failureOf(run(busy));
  expect(reads).toBe(0);
  await run(gatewayWith({}));
  expect(reads).toBe(1);
});

test("arguments that are no JSON cost no call", async () => {
  const budget = new CallBudget({ ...defaultGatewayLimits, maxToolCalls: 1 });
  const gateway = gatewayOf(nothing, { budget });
  const wrong = [] as unknown as JsonObject;
  expect((await failureOf(gateway.runTool("a:tool", wrong, never))).code).toBe("INVALID_REQUEST");
  await gateway.runTool("a:tool", {}, never);
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

  const loads = (limits: Partial<GatewayLimits>, loadArtifact: LoadArtifact) => {
    const budget = new CallBudget({ ...defaultGatewayLimits, ...limits });
    const gateway = gatewayOf(nothing, { budget, loadArtifact });
    return (piece: Partial<PieceRequest>, signal = never) =>
      gateway.loadArtifact({ filename: "a", offset: 0, length: 10, ...piece }, signal);
  };
  const whole: LoadArtifact = async ({ length }) => ({ ...facts, bytes: Buffer.alloc(length) });
  const limitOf = async (operation: Promise<unknown>) => (await failureOf(operation)).data;
  const noBytes = (bound: number) => ({ limit: "max_artifact_bytes", bound });
  const noLookups = (bound: number) => ({ limit: "max_lookups", bound });

  test("that fails, or whose load is aborted, is paid in full", async () => {
    const controller = new AbortController();
    const load = loads({ maxArtifactBytes: 25 }, async ({ filename }) => {
      if (filename === "slow") controller.abort(new Error("not wanted"));
      throw new InvocationError("ARTIFACT_ERROR", "It is gone");
    });
    expect((await failureOf(load({}))).code).toBe("ARTIFACT_ERROR");
    const aborted = load({ filename: "slow" }, controller.signal);
    await expect(aborted).rejects.toThrow("not wanted");
    expect(await limitOf(load({}))).toEqual(noBytes(25));
  });

  test("is one lookup if it is read in order", async () => {
    const load = loads({ maxLookups: 2, maxArtifactBytes: 60 }, whole);
    await load({});
    for (const offset of [10, 20]) await load({ offset, version: 1 });
    await load({ offset: 30 });
    await load({ filename: "b" });
    expect(await limitOf(load({ filename: "a", offset: 40 }))).toEqual(noLookups(2));
  });

  test.each([
    ["from another place", { offset: 20 }],
    ["of another version", { offset: 10, version: 2 }],
    ["of another artifact", { offset: 10, filename: "b" }],
  ])("pays what is before a piece %s, and a lookup", async (_, piece) => {
    const load = loads({ maxLookups: 2, maxArtifactBytes: 40 }, whole);
    await load({});
    const other = { ...piece, length: 41 - 10 - piece.offset };
    expect(await limitOf(load(other))).toEqual(noBytes(40));
    expect(await limitOf(load(piece))).toEqual(noLookups(2));
    const fits = loads({ maxArtifactBytes: 40 }, whole);
    await fits({});
    await fits({ ...other, length: other.length - 1 });
    expect(await limitOf(fits({ length: 1 }))).toEqual(noBytes(40));
  });

  test("is read from its start after a failure, and after a load beside it", async () => {
    let isGone = false;
    const load = loads({ maxLookups: 4 }, async (piece, signal) => {
      if (isGone) throw new InvocationError("ARTIFACT_ERROR", "It is gone");
      return whole(piece, signal);
    });
    await load({});
    isGone = true;
    await failureOf(load({ offset: 10 }));
    isGone = false;
    await load({ offset: 10 });
    // The second takes the place of the first.
    const first = load({ filename: "b" });
    await Promise.all([first, load({ filename: "c" })]);
    expect(await limitOf(load({ filename: "b", offset: 10 }))).toEqual(noLookups(4));
  });

  test("is an operation of the rate", async () => {
    const load = loads({ maxOperationsPerSecond: 1 }, whole);
    await load({});
    const controller = new AbortController();
    const waiting = load({ offset: 10 }, controller.signal);
    controller.abort(new Error("waits"));
    await expect(waiting).rejects.toThrow("waits");
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

  test("counts as a lookup also where there is no such piece, as a chain without steps does", async () => {
    const budget = new CallBudget({ ...defaultGatewayLimits, maxLookups: 2 });
    const gateway = gatewayOf(nothing, { budget, loadArtifact: whole });
    await failureOf(gateway.loadArtifact({ ...piece, length: 0 }, never));
    await gateway.runChain([], never);
    const error = await failureOf(gateway.runChain([], never));
    expect(error).toMatchObject({ code: "LIMIT_REACHED", data: { limit: "max_lookups" } });
  });

  test("is not there without a store", async () => {
    const error = await failureOf(gatewayOf(nothing).loadArtifact(piece, never));
    expect(error.code).toBe("NOT_ALLOWED");
  });
});
