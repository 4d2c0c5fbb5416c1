/**
 * Calls of which each may use the result before it.
 */
import { maxMessageBytes } from "../protocol/limits.ts";
import type { JsonObject } from "../support/json/json.ts";
import {
  type ChainResult,
  type ChainStep,
  GatewayError,
  type RunResult,
  type StepResult,
} from "./gateway.ts";
import { type SizedResult, copyJson } from "./copies.ts";

/** Calls one of the tools. The arguments are read-only. */
type CallStep = (toolId: string, args: JsonObject) => Promise<SizedResult>;

/**
 * Runs the steps. Rejects with the first GatewayError, with `stepResults`; as `call` does on abort.
 * The structured results together have at most `maxMessageBytes`.
 */
export async function runSteps(
  steps: readonly ChainStep[],
  call: CallStep,
  signal: AbortSignal,
): Promise<ChainResult> {
  const stepResults: StepResult[] = [];
  let last: RunResult = { structured: {}, artifacts: [] };
  let sizeBytes = 0;
  for (const step of steps) {
    const isFirst = stepResults.length === 0;
    try {
      const called = await call(step.toolId, argumentsOf(step, isFirst ? undefined : last));
      sizeBytes += called.sizeBytes;
      if (sizeBytes > maxMessageBytes) throw tooLarge(sizeBytes);
      last = called.result;
    } catch (error) {
      if (signal.aborted || !(error instanceof GatewayError)) throw error;
      throw withSteps(error, [...stepResults, failed(step.toolId, error)]);
    }
    stepResults.push({ toolId: step.toolId, ...last });
  }
  // The caller may change one of the two.
  return { structured: copyJson(last.structured).value, artifacts: copied(last), stepResults };
}

function argumentsOf(step: ChainStep, last: RunResult | undefined): JsonObject {
  const args = step.args ?? {};
  return step.usePrevious === true && last ? { ...args, previous: last.structured } : args;
}

function copied({ artifacts }: RunResult): RunResult["artifacts"] {
  return artifacts.map((artifact) => ({ ...artifact }));
}

function failed(toolId: string, { code, message, retryable, data }: GatewayError): StepResult {
  return { toolId, error: { code, message, retryable, ...(data && { data }) } };
}

function withSteps(error: GatewayError, stepResults: readonly StepResult[]): GatewayError {
  const { code, op, message, retryable, data } = error;
  return new GatewayError(code, op, message, { cause: error, retryable, data, stepResults });
}

function tooLarge(sizeBytes: number): GatewayError {
  const message = `The results of the chain have ${sizeBytes} bytes; at most ${maxMessageBytes} fit. Save large data as an artifact.`;
  return new GatewayError("RESOURCE_EXHAUSTED", "validate_output", message, { retryable: false });
}
