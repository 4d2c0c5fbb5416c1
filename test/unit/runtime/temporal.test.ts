/**
 * Executions as activities of Temporal, against what is used of its SDK.
 */
import { describe, expect, test, vi } from "vitest";
import { createFunctionGateway } from "../../../worker/gateway/functions.ts";
import {
  type RuntimeBackend,
  defineBackend,
  unsafeHost,
} from "../../../worker/runtime/api/backend.ts";
import { Runtime } from "../../../worker/runtime/api/runtime.ts";
import { declaredBackend } from "../../../worker/runtime/declared.ts";
import {
  type ActivityContext,
  heartbeatIntervalMs,
  temporalActivity,
} from "../../../worker/runtime/temporal.ts";
import type { Clock } from "../../../worker/support/clock.ts";
import { codeOf, scriptedDefinition } from "../../support/runtime/scripted-backend.ts";

const gateway = createFunctionGateway([{ id: "echo", run: (args) => args }]);
const request = { code: codeOf(["call", "echo", { a: 1 }]), profile: "standard" } as const;

/** Time that passes by `sleep` when the test says so. */
function steppedClock() {
  const sleeps: number[] = [];
  let wake = Promise.withResolvers<void>();
  const clock: Clock = {
    nowMs: () => 0,
    monotonicMs: () => sleeps.length,
    async sleep(ms, signal) {
      sleeps.push(ms);
      const ended = new Promise((_, reject) =>
        signal?.addEventListener("abort", () => reject(new Error())),
      );
      await Promise.race([wake.promise, ended]);
    },
  };
  const step = (): void => {
    wake.resolve();
    wake = Promise.withResolvers();
  };
  return { clock, sleeps, step };
}

function activityOf(
  backend: RuntimeBackend | undefined,
  info: Partial<ActivityContext["info"]> = {},
) {
  const cancelling = new AbortController();
  const heartbeat = vi.fn<ActivityContext["heartbeat"]>();
  const context: ActivityContext = {
    info: { attempt: 2, heartbeatTimeoutMs: 60_000, ...info },
    cancellationSignal: cancelling.signal,
    heartbeat,
  };
  const time = steppedClock();
  const runtime = new Runtime(backend && { backends: { standard: backend } });
  const activity = temporalActivity(runtime, {
    gateway,
    context: () => context,
    clock: time.clock,
  });
  return { activity, cancelling, heartbeat, ...time };
}

const scripted = (kind = "scripted") => defineBackend({ ...scriptedDefinition(), kind });

/** As the SDK tells failures that it sends as they are: `SymbolBasedInstanceOfError`. */
const isMarked = (error: unknown, name: string): boolean =>
  (error as Record<symbol, unknown>)[Symbol.for(`__temporal_is${name}`)] === true;

describe("an activity", () => {
  test("executes code by the gateway that it was made with", async () => {
    const { activity } = activityOf(scripted());
    expect(await activity(request)).toMatchObject({ value: { structured: { a: 1 } } });
  });

  test("gives what goes over the wire of Temporal", async () => {
    const { activity } = activityOf(scripted());
    const result = await activity(JSON.parse(JSON.stringify(request)) as typeof request);
    expect(JSON.parse(JSON.stringify(result))).toMatchObject({ value: { structured: { a: 1 } } });
  });

  test.each([
    [60_000, heartbeatIntervalMs],
    [3_000, 1_000],
  ])(
    "beats within a timeout of %d ms every %d ms, until it ends",
    async (heartbeatTimeoutMs, ms) => {
      const under = activityOf(scripted(), { heartbeatTimeoutMs });
      const running = under.activity({ ...request, code: codeOf(["wait"]) });
      await vi.waitFor(() => expect(under.heartbeat).toHaveBeenCalledTimes(1));
      under.step();
      await vi.waitFor(() => expect(under.heartbeat).toHaveBeenCalledTimes(2));
      expect(under.heartbeat).toHaveBeenCalledWith({ attempt: 2, durationMs: expect.any(Number) });
      expect(under.sleeps[0]).toBe(ms);
      under.cancelling.abort(new Error("CANCELLED"));
      await expect(running).rejects.toThrow("CANCELLED");
      under.step();
      expect(under.heartbeat).toHaveBeenCalledTimes(2);
    },
  );

  test("does not beat without a heartbeat timeout", async () => {
    const cancelling = new AbortController();
    const heartbeat = vi.fn();
    const context = { info: { attempt: 1 }, cancellationSignal: cancelling.signal, heartbeat };
    const runtime = new Runtime({ backends: { standard: scripted() } });
    await temporalActivity(runtime, { gateway, context: () => context })(request);
    expect(heartbeat).not.toHaveBeenCalled();
  });

  test("rejects with Temporal's reason when it is cancelled", async () => {
    const { activity, cancelling, heartbeat } = activityOf(scripted());
    const running = activity({ ...request, code: codeOf(["wait"]) });
    await vi.waitFor(() => expect(heartbeat).toHaveBeenCalled());
    const reason = new Error("CANCELLED");
    cancelling.abort(reason);
    await expect(running).rejects.toBe(reason);
  });
});

describe("a failure of an activity", () => {
  test.each([
    ["RESOURCE_LIMIT", false],
    ["RUNTIME_UNAVAILABLE", true],
  ] as const)("by %s is an ApplicationFailure to Temporal", async (code, retryable) => {
    const { activity } = activityOf(scripted());
    const data = { limit: "memory" };
    const failing = { ...request, code: codeOf(["fail", code, { detail: "why", data }]) };
    const error: unknown = await activity(failing).catch((reason: unknown) => reason);
    expect(error).toMatchObject({
      ...{ type: code, nonRetryable: !retryable, message: expect.stringMatching(/: why$/) },
      details: [{ op: "execute", backend: "scripted", data, partial: { stdout: "" } }],
    });
    expect(isMarked(error, "TemporalFailure") && isMarked(error, "ApplicationFailure")).toBe(true);
  });

  test.each<readonly [string, RuntimeBackend | undefined]>([
    ["a backend without isolation", scripted(unsafeHost)],
    ["no backend", undefined],
  ])("is %s, on which nothing runs", async (_, backend) => {
    const { activity, heartbeat } = activityOf(backend);
    await expect(activity(request)).rejects.toMatchObject({
      ...{ type: "BACKEND_DENIED", nonRetryable: true },
    });
    expect(heartbeat).not.toHaveBeenCalled();
  });

  test("is a backend that is a name only", async () => {
    const { activity } = activityOf(declaredBackend("kubernetes"));
    await expect(activity(request)).rejects.toMatchObject({
      ...{ type: "RUNTIME_UNAVAILABLE", nonRetryable: true },
    });
  });
});
