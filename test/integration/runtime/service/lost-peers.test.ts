/**
 * Peers that are gone, stopped, or do not do their part.
 */
import { describe, expect, test, vi } from "vitest";
import { createFunctionGateway } from "../../../../worker/gateway/functions.ts";
import { RuntimeError } from "../../../../worker/runtime/api/errors.ts";
import { openRemote } from "../../../../worker/runtime/service/remote.ts";
import { SuiteTools } from "../../../conformance/gateway/suite-tools.ts";
import { patience } from "../../../support/patience.ts";
import { type Step, codeOf } from "../../../support/runtime/scripted-backend.ts";
import { CallingProcess, ServedProcess } from "../../../support/runtime/served-process.ts";

const pingIntervalMs = 200;

function requestOf(...steps: readonly Step[]) {
  const tools = new SuiteTools();
  return { code: codeOf(...steps), tools, gateway: createFunctionGateway(tools.list) };
}

async function failureOf(execution: Promise<unknown>): Promise<RuntimeError> {
  const error: unknown = await execution.catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(RuntimeError);
  return error as RuntimeError;
}

type Signal = "SIGKILL" | "SIGSTOP";
const killed = ["is killed", "SIGKILL"] as const;
const stopped = ["is stopped", "SIGSTOP"] as const;

describe("a far side", () => {
  const endsItsExecutions = async ([, signal]: readonly [string, Signal]): Promise<void> => {
    await using far = await ServedProcess.start();
    await using backend = await openRemote({ url: far.url, pingIntervalMs });
    const request = requestOf(["call", "text:wait", {}]);
    const failed = failureOf(backend.execute(request));
    await vi.waitFor(() => expect(request.tools.waiting).toBe(1), patience);
    far.child.kill(signal);
    expect(await failed).toMatchObject({ code: "RUNTIME_UNAVAILABLE", retryable: true });
    expect(request.tools.waiting).toBe(0);
  };
  const title = "that %s ends its executions and their calls";
  test.for([killed])(title, endsItsExecutions);
  test.for([stopped])(title, { tags: "full" }, endsItsExecutions);

  test("that is stopped ends an abort, too", { tags: "full" }, async () => {
    await using far = await ServedProcess.start();
    await using backend = await openRemote({ url: far.url, pingIntervalMs });
    const request = requestOf(["call", "text:wait", {}]);
    const controller = new AbortController();
    const running = backend.execute(request, { signal: controller.signal });
    await vi.waitFor(() => expect(request.tools.waiting).toBe(1), patience);
    far.child.kill("SIGSTOP");
    const reason = new Error("not wanted");
    controller.abort(reason);
    await expect(running).rejects.toBe(reason);
  });

  test("that closes ends its executions", async () => {
    await using far = await ServedProcess.start();
    await using backend = await openRemote({ url: far.url });
    const failed = failureOf(backend.execute(requestOf(["wait"])));
    await far.says(/^started$/m);
    far.child.kill("SIGTERM");
    expect(await failed).toMatchObject({ code: "RUNTIME_UNAVAILABLE", retryable: true });
    await far.says(/^aborted$/m);
    await far.says(/^closed$/m);
    await far.exited;
  });

  test("that is not there is said so", async () => {
    const far = await ServedProcess.start();
    const { url } = far;
    await far[Symbol.asyncDispose]();
    const failure = await failureOf(openRemote({ url }));
    expect(failure).toMatchObject({ code: "RUNTIME_UNAVAILABLE", op: "open", retryable: true });
    expect(failure.message).toContain("ECONNREFUSED");
  });

  test("that answers is not lost, however long its code runs", { tags: "full" }, async () => {
    await using far = await ServedProcess.start({ pingIntervalMs });
    await using backend = await openRemote({ url: far.url, pingIntervalMs });
    const request = { ...requestOf(["print", "a"], ["wait"]), timeoutMs: 6 * pingIntervalMs };
    expect(await failureOf(backend.execute(request))).toMatchObject({ code: "TIMEOUT" });
  });
});

describe("a caller", () => {
  const endsItsExecution = async ([, signal]: readonly [string, Signal]): Promise<void> => {
    await using far = await ServedProcess.start({ pingIntervalMs });
    await using caller = new CallingProcess(far.url, codeOf(["wait"]));
    await far.says(/^started$/m);
    caller.child.kill(signal);
    await far.says(/^aborted$/m);
  };
  test.for([stopped])("that %s ends its execution", endsItsExecution);
  test.for([killed])("that %s ends its execution", { tags: "full" }, endsItsExecution);
});
