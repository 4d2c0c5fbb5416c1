/**
 * The runtime: which backend runs what, and what is refused in which order.
 */
import { describe, expect, test, vi } from "vitest";
import { checkGateway } from "../../../worker/runtime/testing/tools.ts";
import {
  type BackendDefinition,
  type RuntimeBackend,
  defineBackend,
} from "../../../worker/runtime/api/backend.ts";
import { CountedGateway } from "../../../worker/runtime/api/counted-gateway.ts";
import { systemClock } from "../../../worker/support/clock.ts";
import { codeEngine } from "../../../worker/runtime/api/engine.ts";
import { RuntimeError, runtimeErrorFacts } from "../../../worker/runtime/api/errors.ts";
import type { ExecuteRequest } from "../../../worker/runtime/api/request.ts";
import { Runtime } from "../../../worker/runtime/api/runtime.ts";

const gateway = checkGateway();

/** Its code is the id of a tool that it calls, or nothing; the value is its kind. */
function callingBackend(kind: string): RuntimeBackend {
  return defineBackend({
    ...{ kind, languages: ["ids"], readiness: "prototype", details: { of: kind } },
    evidence: { memory: "kernel", disk: "absent" },
    run: async ({ code, gateway: tools }, signal) => {
      if (code === "throw") throw new TypeError("not the code's fault");
      for (const toolId of code.split(" ").filter((id) => id.includes(":")))
        await tools.runTool(toolId, { a: 1, b: 2 }, signal);
      return { value: kind, stdout: "printed", stderr: "" };
    },
  });
}

function runtimeOf(options: ConstructorParameters<typeof Runtime>[0] = {}): Runtime {
  const standard = callingBackend("box");
  return new Runtime({ backends: { standard }, defaultProfile: "standard", ...options });
}

async function failureOf(running: Promise<unknown>): Promise<RuntimeError> {
  const error: unknown = await running.catch((cause: unknown) => cause);
  expect(error).toBeInstanceOf(RuntimeError);
  return error as RuntimeError;
}

describe("a runtime", () => {
  test("checks in the documented order", async () => {
    const runtime = runtimeOf({
      backends: { dev: callingBackend("unsafe_host") },
      denyUnsafeProfiles: ["dev"],
    });
    const reason = new Error("not wanted");
    const steps: [Partial<ExecuteRequest>, string][] = [
      [{}, "gateway is required"],
      [{ gateway }, "code is required"],
      [
        { code: "x", limits: { memoryBytes: -1 } },
        "invalid limits: MemoryBytes cannot be negative",
      ],
      [
        { limits: {}, profile: "other" as "dev" },
        "runtime unavailable: there is no profile other; the profiles are dev, standard, hardened",
      ],
      [{ profile: "standard" }, "runtime unavailable: profile standard has no backend"],
      [{ profile: "dev" }, "backend denied by policy: profile dev may not run without isolation"],
    ];
    let request: Partial<ExecuteRequest> = {};
    const aborted = { signal: AbortSignal.abort(reason) };
    await expect(runtime.execute(request as ExecuteRequest, aborted)).rejects.toBe(reason);
    for (const [more, message] of steps) {
      request = { ...request, ...more };
      expect((await failureOf(runtime.execute(request as ExecuteRequest))).message).toBe(message);
    }
    expect((await failureOf(runtime.execute(request as ExecuteRequest))).code).toBe(
      "BACKEND_DENIED",
    );
  });

  test("needs a profile", async () => {
    const runtime = new Runtime({ backends: { standard: callingBackend("box") } });
    const { code, retryable } = await failureOf(runtime.execute({ code: "x", gateway }));
    expect([code, retryable]).toEqual(["RUNTIME_UNAVAILABLE", false]);
    const named = runtime.execute({ code: "x", gateway, profile: "standard" });
    expect((await named).value).toBe("box");
  });

  test("runs on the backend that its profile has now", async () => {
    const runtime = runtimeOf();
    runtime.registerBackend("dev", callingBackend("other"));
    const request = { code: "x", gateway, profile: "dev" } as const;
    expect((await runtime.execute(request)).value).toBe("other");
    runtime.unregisterBackend("dev");
    expect((await failureOf(runtime.execute(request))).op).toBe("select");
    expect(() => runtime.registerBackend("other" as "standard", callingBackend("x"))).toThrow(
      TypeError,
    );
  });

  test("warns of a backend without isolation each time, and lives with a log that throws", async () => {
    const warnings: string[] = [];
    const logger = {
      info: () => {
        throw new Error("no log");
      },
      warn: (message: string) => {
        warnings.push(message);
        throw new Error("no log");
      },
      error: () => undefined,
    };
    const runtime = runtimeOf({ logger, backends: { dev: callingBackend("unsafe_host") } });
    const request = { code: "x", gateway, profile: "dev" } as const;
    await runtime.execute(request);
    await runtime.execute(request);
    expect(warnings).toHaveLength(2);
  });
});

describe("a backend", () => {
  const backend = callingBackend("box");

  test("tells a limit as enforced where it is set and kept", async () => {
    const limits = { memoryBytes: 1, cpuQuotaMillis: 1, diskBytes: 0, maxToolCalls: 2 };
    const result = await backend.execute({ code: "x", gateway, limits });
    expect(result.limitsEnforced).toEqual({
      ...{ timeout: true, toolCalls: true, chainSteps: false },
      ...{ memory: true, cpu: false, pids: false, disk: false },
    });
    expect(result.limitsEnforcedBy).toEqual({
      ...{ timeout: "guard", toolCalls: "engine", memory: "kernel" },
    });
  });

  test("starts nothing without a limit that is required", async () => {
    const request = { code: "throw", gateway, requireEnforced: ["memory", "cpu"] } as const;
    const { code, message } = await failureOf(
      backend.execute({ ...request, limits: { memoryBytes: 1, cpuQuotaMillis: 1 } }),
    );
    expect([code, message.endsWith(": cpu")]).toEqual(["RUNTIME_UNAVAILABLE", true]);
  });

  test("records calls, and refuses those beyond the limit", async () => {
    const call = "math:add text:fail";
    const failure = await failureOf(backend.execute({ code: call, gateway }));
    expect(failure.partial?.toolCalls).toMatchObject([
      { toolId: "math:add", errorOp: undefined },
      { toolId: "text:fail", errorOp: "execute" },
    ]);
    const limits = { maxToolCalls: 1 };
    const refused = await failureOf(
      backend.execute({ code: "math:add math:add", gateway, limits }),
    );
    expect(refused.cause).toMatchObject({ code: "LIMIT_REACHED" });
    expect(refused.partial?.toolCalls).toHaveLength(1);
  });

  test("that fails by itself is unavailable, with the cause", async () => {
    const failure = await failureOf(backend.execute({ code: "throw", gateway }));
    expect(failure).toMatchObject({ code: "RUNTIME_UNAVAILABLE", backend: "box" });
    expect(failure.cause).toBeInstanceOf(TypeError);
  });
});

describe("a runtime error", () => {
  test("has the text of its code", () => {
    const texts = Object.values(runtimeErrorFacts).map(({ text }) => text);
    expect(texts).toEqual([
      ...["runtime unavailable", "backend denied by policy", "sandbox policy violation"],
      ...["execution timeout", "resource limit exceeded", "gateway is required"],
      ...["code is required", "invalid limits", "execution failed"],
    ]);
    expect(new RuntimeError("TIMEOUT").retryable).toBe(true);
    expect(new RuntimeError("BACKEND_DENIED").retryable).toBe(false);
  });
});

describe("an engine", () => {
  test("runs code by a runtime, with its calls bounded", async () => {
    const engine = codeEngine(runtimeOf(), { profile: "standard" });
    const result = await engine.execute({ code: "math:add" }, gateway);
    expect(Object.keys(result)).toEqual([
      ...["value", "stdout", "stderr", "toolCalls", "durationMs"],
    ]);
    expect([result.value, result.toolCalls.length]).toEqual(["box", 1]);
    const refused = engine.execute({ code: "math:add math:add", maxToolCalls: 1 }, gateway);
    expect((await failureOf(refused)).partial?.toolCalls).toHaveLength(1);
  });
});

describe("an execution", () => {
  const backend = callingBackend("box");

  test.each([
    [{ timeoutMs: 2 ** 31 }, "invalid limits: Timeout must be"],
    [{ timeoutMs: "5" }, "invalid limits: Timeout must be"],
    [{ limits: null }, "invalid limits: Limits must be"],
    [{ language: 5 }, "invalid limits: Language must be"],
    [{ requireEnforced: "memory" }, "invalid limits: RequireEnforced has"],
    [{ requireEnforced: ["constructor"] }, "invalid limits: RequireEnforced has"],
  ])("with %j is refused by name", async (wrong, message) => {
    const request = { code: "x", gateway, ...wrong } as ExecuteRequest;
    expect((await failureOf(backend.execute(request))).message).toContain(message);
  });

  test("of nothing has no gateway", async () => {
    const nothing = backend.execute(undefined as unknown as ExecuteRequest);
    expect((await failureOf(nothing)).code).toBe("MISSING_GATEWAY");
  });

  test("starts nothing under a profile that it does not say to keep", async () => {
    const run = vi.fn(async () => ({ value: 1, stdout: "", stderr: "" }));
    const definition: BackendDefinition = {
      ...{ kind: "own", languages: ["x"], readiness: "stub", details: {}, evidence: {}, run },
    };
    const usual = defineBackend(definition);
    const refusal = await failureOf(usual.execute({ code: "x", gateway, profile: "hardened" }));
    expect(refusal).toMatchObject({
      ...{ code: "RUNTIME_UNAVAILABLE", op: "select", backend: "own", retryable: false },
      detail: "the backend own does not keep the profile hardened",
    });
    expect(run).not.toHaveBeenCalled();
    for (const more of [{ profile: "dev" }, { profile: "standard" }, {}] as const)
      expect((await usual.execute({ code: "x", gateway, ...more })).value).toBe(1);
    const bare = defineBackend({ ...definition, profiles: ["dev"] });
    const { detail } = await failureOf(bare.execute({ code: "x", gateway, profile: "standard" }));
    expect(detail).toContain("standard");
    const hard = defineBackend({ ...definition, profiles: ["standard", "hardened"] });
    expect((await hard.execute({ code: "x", gateway, profile: "hardened" })).value).toBe(1);
    expect(hard.profiles).toEqual(["standard", "hardened"]);
  });

  test("can say that it was held to less", async () => {
    const less = defineBackend({
      ...{ kind: "less", languages: ["x"], readiness: "stub", details: { deep: { a: 1 } } },
      evidence: { memory: "kernel" },
      run: async () => ({ value: null, stdout: "", stderr: "", evidence: {} }),
    });
    const limits = { memoryBytes: 1, maxToolCalls: 1 };
    const { limitsEnforced, backend: info } = await less.execute({ code: "x", gateway, limits });
    expect([limitsEnforced.memory, limitsEnforced.toolCalls]).toEqual([false, true]);
    Object.assign(info.details["deep"] as object, { a: 2 });
    expect((await less.execute({ code: "x", gateway })).backend.details).toEqual({
      deep: { a: 1 },
    });
    expect(Object.isFrozen(less.evidence)).toBe(true);
  });

  test("counts the steps of a chain that is cancelled, and asks for tools so many times", async () => {
    const over = new AbortController();
    const slow = { ...gateway, runChain: () => Promise.reject(new Error("cancelled")) };
    const limits = { maxToolCalls: 6, maxChainSteps: Infinity };
    const counted = new CountedGateway(slow, limits, systemClock, over.signal);
    const steps = Array.from({ length: 5 }, () => ({ toolId: "math:add" }));
    await expect(counted.runChain(steps, over.signal)).rejects.toThrow("cancelled");
    await expect(counted.runChain(steps, over.signal)).rejects.toThrow("has 1 left");
    expect(counted.records).toHaveLength(5);
    const asked = new CountedGateway(gateway, limits, systemClock, over.signal);
    for (let n = 0; n < 200; n++) await asked.listNamespaces(over.signal);
    await expect(asked.listNamespaces(over.signal)).rejects.toThrow("look up tools 200 times");
    over.abort(new Error("over"));
    await expect(asked.runTool("math:add", {}, new AbortController().signal)).rejects.toThrow(
      "over",
    );
  });
});
