/**
 * Runs one program on a thread: answers its calls, looks at its processor time, reads its value.
 */
import { decodeJson } from "../../support/json/json-decoder.ts";
import type { Clock } from "../../support/clock.ts";
import { JsonError } from "../../support/json/json.ts";
import type { Executed, Execution } from "../api/backend.ts";
import { RuntimeError } from "../api/errors.ts";
import { maxValueDepth, maxValues, minCpuLookMs } from "./limits.ts";
import type { Engine, Outcome } from "./messages.ts";
import { answerTo } from "./requests.ts";
import type { EngineThread } from "./threads.ts";

/** What a run needs of an execution. */
export type WasmExecution = Pick<Execution, "code" | "language" | "gateway"> & {
  readonly limits: Pick<Execution["limits"], "cpuQuotaMillis">;
};

/** Code of a thread's end by its own objects. */
const threadMemoryCode = "ERR_WORKER_OUT_OF_MEMORY";

/**
 * Runs the program to its end. Rejects with RuntimeError that has what was printed, also on abort;
 * the thread has to be ended then. Settles once nothing of its calls runs.
 */
export async function runOn(
  thread: EngineThread,
  engine: Engine,
  execution: WasmExecution,
  clock: Clock,
  signal: AbortSignal,
): Promise<{ result: Executed | RuntimeError; isReusable: boolean }> {
  const ending = new AbortController();
  const over = AbortSignal.any([signal, ending.signal]);
  const calls = new Set<Promise<void>>();
  const ended = Promise.withResolvers<{ outcome: Outcome; isReusable: boolean }>();
  const { code, language, gateway } = execution;
  const fail = (error: Error): void => ended.reject(error);
  const onAbort = (): void => fail(signal.reason as Error);
  try {
    const { cpuQuotaMillis } = execution.limits;
    const before = cpuQuotaMillis === Infinity ? undefined : await thread.cpuUsage();
    signal.throwIfAborted();
    signal.addEventListener("abort", onAbort, { once: true });
    thread.listen((report) => {
      if (report.type === "end") return ended.resolve(report);
      if (report.type !== "request" || over.aborted) return;
      const call = answerTo(report, gateway, over).then((line) => {
        if (!over.aborted) thread.post({ type: "answer", id: report.id, line });
      });
      calls.add(call);
      void call.finally(() => calls.delete(call));
    }, fail);
    thread.post({ type: "run", program: { code, language }, engine });
    if (before !== undefined)
      void watchCpu(thread, before, cpuQuotaMillis, clock, over).then((outcome) => {
        if (outcome !== undefined) ended.resolve({ outcome, isReusable: false });
      });
    const { outcome, isReusable } = await ended.promise;
    ending.abort(new Error("the program has ended"));
    return { result: await resultOf(outcome, thread, signal), isReusable };
  } catch (error) {
    return { result: failureOf(error, thread), isReusable: false };
  } finally {
    signal.removeEventListener("abort", onAbort);
    thread.listen(
      () => undefined,
      () => undefined,
    );
    ending.abort(new Error("the program has ended"));
    await Promise.all(calls);
  }
}

/** Looks again when the program can have used up its time. Undefined once it has ended. */
async function watchCpu(
  thread: EngineThread,
  before: NodeJS.CpuUsage,
  quotaMs: number,
  clock: Clock,
  signal: AbortSignal,
): Promise<Outcome | undefined> {
  try {
    for (let usedMs = 0; ;) {
      await clock.sleep(Math.max(quotaMs - usedMs, minCpuLookMs), signal);
      const { user, system } = await thread.cpuUsage(before);
      usedMs = (user + system) / 1_000;
      if (usedMs > quotaMs) return { kind: "limit", limit: "cpu", message: "processor time" };
    }
  } catch {
    // The program or its thread has ended.
    return undefined;
  }
}

async function resultOf(
  outcome: Outcome,
  thread: EngineThread,
  signal: AbortSignal,
): Promise<Executed | RuntimeError> {
  const partial = printed(thread);
  if (outcome.kind === "failed") {
    const { message, place } = outcome;
    const data = place && { ...place };
    return new RuntimeError("EXECUTION_FAILED", { detail: message, data, partial });
  }
  if (outcome.kind === "limit") return limitError(outcome.limit, outcome.message, partial);
  try {
    const limits = { depth: maxValueDepth, values: maxValues };
    return { value: await decodeJson(Buffer.from(outcome.json), signal, limits), ...partial };
  } catch (error) {
    if (!(error instanceof JsonError)) throw error;
    const detail = `the value is refused: ${error.message}`;
    return new RuntimeError("EXECUTION_FAILED", { detail, partial });
  }
}

/** Other errors are those of this backend itself. */
function failureOf(error: unknown, thread: EngineThread): RuntimeError {
  const partial = printed(thread);
  if ((error as NodeJS.ErrnoException).code === threadMemoryCode)
    return limitError("memory", "memory", partial);
  const detail = "the thread failed";
  return new RuntimeError("RUNTIME_UNAVAILABLE", { detail, cause: error, partial });
}

function limitError(
  limit: string,
  detail: string,
  partial: { readonly stdout: string; readonly stderr: string },
): RuntimeError {
  return new RuntimeError("RESOURCE_LIMIT", { detail, data: { limit }, partial });
}

function printed({ output }: EngineThread): { readonly stdout: string; readonly stderr: string } {
  return { stdout: output.text("stdout"), stderr: output.text("stderr") };
}
