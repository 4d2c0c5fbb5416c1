/**
 * Executions in another process.
 */
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { createFunctionGateway } from "../../../../worker/gateway/functions.ts";
import type { RuntimeBackend } from "../../../../worker/runtime/api/backend.ts";
import { RuntimeError } from "../../../../worker/runtime/api/errors.ts";
import { openRemote } from "../../../../worker/runtime/service/remote.ts";
import { gatewayOf } from "../../../support/gateway/raw-program.ts";
import { patience } from "../../../support/patience.ts";
import { type Step, codeOf } from "../../../support/runtime/scripted-backend.ts";
import { ServedProcess } from "../../../support/runtime/served-process.ts";
import { SuiteTools, allowed } from "../../../conformance/gateway/suite-tools.ts";

let far: ServedProcess;
let backend: RuntimeBackend;
beforeAll(async () => {
  far = await ServedProcess.start();
  backend = await openRemote({ url: far.url });
});
afterAll(async () => {
  await backend[Symbol.asyncDispose]();
  await far[Symbol.asyncDispose]();
});

function setUp() {
  const tools = new SuiteTools();
  const gateway = createFunctionGateway(tools.list, { allowed });
  return { tools, gateway };
}

const requestOf = (...steps: readonly Step[]) => ({ code: codeOf(...steps), ...setUp() });

async function failureOf(execution: Promise<unknown>): Promise<RuntimeError> {
  const error: unknown = await execution.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(RuntimeError);
  return error as RuntimeError;
}

describe("a remote backend", () => {
  test("is what the far side is", () => {
    const { kind, languages, readiness, profiles, evidence } = backend;
    expect({ kind, languages, readiness, profiles }).toEqual({
      ...{ kind: "remote", languages: ["steps", "more steps"], readiness: "beta" },
      profiles: ["dev", "standard"],
    });
    expect(evidence).toMatchObject({ memory: "kernel", timeout: "guard" });
  });

  test("executes there, by the tools of here", async () => {
    const request = requestOf(["print", "added"], ["call", "math:add", { a: 1, b: 2 }]);
    const limits = { memoryBytes: 1_000_000, pidsMax: 5, maxToolCalls: 3 };
    const result = await backend.execute({ ...request, limits, language: "more steps" });
    expect(result).toMatchObject({
      ...{ value: { structured: { sum: 3 } }, stdout: "added", stderr: "" },
      backend: { kind: "remote", readiness: "beta" },
      limitsEnforcedBy: { memory: "kernel", timeout: "guard", toolCalls: "engine" },
    });
    expect(result.limitsEnforced).toMatchObject({ memory: true, pids: false, toolCalls: true });
    expect(result.backend.details).toMatchObject({
      ...{ kind: "scripted", host: new URL(far.url).host },
      far: { kind: "scripted", readiness: "beta", details: { version: "1", steps: 1 } },
    });
    expect(result.toolCalls).toMatchObject([{ toolId: "math:add", errorOp: undefined }]);
    expect(request.tools.called).toEqual(["math:add"]);
  });

  test("passes metadata and limits on", async () => {
    const metadata = { user: "a", list: [1] };
    const limits = { memoryBytes: 7, maxChainSteps: 0 };
    const { value } = await backend.execute({ ...requestOf(["metadata"]), metadata, limits });
    expect(value).toEqual({ metadata, limits: expect.objectContaining({ memoryBytes: 7 }) });
  });

  test("runs chains and looks tools up", async () => {
    const chain = [
      { toolId: "math:add", args: { a: 1, b: 2 } },
      { toolId: "text:echo", usePrevious: true },
    ];
    const ran = await backend.execute(requestOf(["chain", chain]));
    expect(ran.value).toMatchObject({ structured: { args: { previous: { sum: 3 } } } });
    const described = await backend.execute(requestOf(["describe", "math:add"]));
    expect(described.value).toMatchObject({ id: "math:add", notes: expect.any(String) });
  });

  test("takes large arguments and results", { tags: "full" }, async () => {
    const text = "é".repeat(200_000);
    const { value } = await backend.execute(requestOf(["call", "text:echo", { text }]));
    expect(value).toMatchObject({ structured: { args: { text } } });
    const large = await backend.execute(requestOf(["letters", 20_000_000]));
    expect(large.value).toHaveLength(20_000_000);
  });

  test("has more calls than fit at once", { tags: "full" }, async () => {
    const calls = ["calls", 200, "text:echo", { text: "x".repeat(50_000) }] as const;
    const gateway = gatewayOf(...setUp().tools.list);
    const { value, toolCalls } = await backend.execute({ code: codeOf(calls), gateway });
    expect((value as { args: { index: number } }[]).map(({ args }) => args.index)).toEqual(
      Array.from({ length: 200 }, (_, index) => index),
    );
    expect(toolCalls).toHaveLength(200);
  });

  test("keeps what the calls of one execution are from another", async () => {
    const executions = Array.from({ length: 50 }, async (_, a) => {
      const request = requestOf(["call", "math:add", { a, b: 1 }]);
      const { value } = await backend.execute(request);
      return (value as { structured: { sum: number } }).structured.sum;
    });
    expect(await Promise.all(executions)).toEqual(Array.from({ length: 50 }, (_, a) => a + 1));
  });
});

describe("a failure of the far side", () => {
  test("is one here, with code, operation, data and what was printed", async () => {
    const data = { limit: "memory" };
    const options = { detail: "too: much", op: "open", retryable: true, data };
    const partial = { stdout: "so far", stderr: "and that" };
    const failing = requestOf(["fail", "RESOURCE_LIMIT", { ...options, partial }]);
    expect(await failureOf(backend.execute(failing))).toMatchObject({
      ...{
        code: "RESOURCE_LIMIT",
        message: "resource limit exceeded: too: much",
        backend: "remote",
      },
      ...{ ...options, partial },
    });
  });

  test("of its own shows nothing of it", async () => {
    const failure = await failureOf(backend.execute(requestOf(["throw"])));
    expect(failure).toMatchObject({ code: "RUNTIME_UNAVAILABLE", retryable: true });
    expect(JSON.stringify([failure.message, failure.data])).not.toContain("secret");
  });

  test("of a tool is the code's", async () => {
    const request = requestOf(["print", "a"], ["call", "math:fail", {}]);
    const failure = await failureOf(backend.execute(request));
    expect(failure).toMatchObject({ code: "EXECUTION_FAILED", partial: { stdout: "a" } });
    expect(failure.message).toContain("It failed");
    expect(failure.partial?.toolCalls).toMatchObject([{ toolId: "math:fail", errorOp: "execute" }]);
  });

  test("by its time limit has what was printed", async () => {
    const request = { ...requestOf(["print", "so far"], ["wait"]), timeoutMs: 1_000 };
    const failure = await failureOf(backend.execute(request));
    expect(failure).toMatchObject({ code: "TIMEOUT", partial: { stdout: "so far" } });
  });

  test("by calls is that of both sides", async () => {
    const limits = { maxToolCalls: 1 };
    const request = requestOf(["call", "plain", {}], ["call", "plain", {}]);
    const failure = await failureOf(backend.execute({ ...request, limits }));
    expect(failure).toMatchObject({ code: "EXECUTION_FAILED" });
    expect(failure.message).toContain("may make 1 calls");
    expect(failure.partial?.toolCalls).toHaveLength(1);
  });

  test("is an answer that is too large", async () => {
    const failure = await failureOf(backend.execute(requestOf(["letters", 34_000_000])));
    expect(failure).toMatchObject({ code: "RESOURCE_LIMIT", data: { limit: "answer" } });
  });
});

describe("a request that is not sent", () => {
  test("is too large", async () => {
    const request = { ...requestOf(), code: "x".repeat(1024 * 1024) };
    const failure = await failureOf(backend.execute(request));
    expect(failure).toMatchObject({ code: "RESOURCE_LIMIT", data: { limit: "request" } });
  });

  test("has metadata that is no JSON", async () => {
    const request = { ...requestOf(["metadata"]), metadata: { big: 1n } };
    const failure = await failureOf(backend.execute(request));
    expect(failure).toMatchObject({ code: "RUNTIME_UNAVAILABLE", retryable: false });
    expect(failure.message).toContain("metadata is no JSON");
  });
});

describe("an abort", () => {
  test("ends the execution there and its calls here, and only these", async () => {
    const [one, other] = [new AbortController(), new AbortController()];
    const aborted = requestOf(["call", "text:wait", {}]);
    const going = requestOf(["call", "text:wait", {}]);
    const before = far.count("aborted");
    const running = backend.execute(aborted, { signal: one.signal });
    const others = backend.execute(going, { signal: other.signal });
    await vi.waitFor(() => {
      expect([aborted.tools.waiting, going.tools.waiting]).toEqual([1, 1]);
    }, patience);
    const reason = new Error("not wanted");
    one.abort(reason);
    await expect(running).rejects.toBe(reason);
    expect(aborted.tools.waiting).toBe(0);
    expect(going.tools.waiting).toBe(1);
    await vi.waitFor(() => expect(far.count("aborted")).toBe(before + 1), patience);
    other.abort(reason);
    await expect(others).rejects.toBe(reason);
    await vi.waitFor(() => expect(far.count("aborted")).toBe(before + 2), patience);
  });

  test("before the start starts nothing", async () => {
    await using own = await ServedProcess.start();
    const there = await openRemote({ url: own.url });
    const reason = new Error("not wanted");
    const controller = new AbortController();
    const running = there.execute(requestOf(["wait"]), { signal: controller.signal });
    controller.abort(reason);
    await expect(running).rejects.toBe(reason);
    await there.execute(requestOf(["value", 1]));
    await vi.waitFor(() => expect(own.count("ended")).toBe(1), patience);
    expect(own.count("started")).toBe(1);
  });

  test("is the end of the backend, too", async () => {
    const own = await openRemote({ url: far.url });
    const request = requestOf(["call", "text:wait", {}]);
    const running = failureOf(own.execute(request));
    await vi.waitFor(() => expect(request.tools.waiting).toBe(1), patience);
    await own[Symbol.asyncDispose]();
    expect(await running).toMatchObject({ code: "RUNTIME_UNAVAILABLE", retryable: false });
    expect(await failureOf(own.execute(requestOf(["value", 1])))).toMatchObject({
      ...{ code: "RUNTIME_UNAVAILABLE", retryable: false },
    });
  });
});

test("an execution that leaves calls behind ends nevertheless, and ends them", async () => {
  const forgotten = Array.from({ length: 20 }, () => ["forget", "text:wait", {}] as const);
  const request = requestOf(...forgotten, ["value", 7]);
  expect((await backend.execute(request)).value).toBe(7);
  expect(request.tools.waiting).toBe(0);
});
