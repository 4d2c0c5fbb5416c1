/**
 * A runtime as the engine of a code-mode toolkit, which knows no profiles and no limits but calls.
 */
import type { ToolGateway } from "../../gateway/gateway.ts";
import type { ExecuteOptions } from "./backend.ts";
import type { ExecuteRequest } from "./request.ts";
import type { ExecuteResult } from "./result.ts";
import type { Runtime } from "./runtime.ts";

/** What an engine runs. */
export type EngineParams = Pick<ExecuteRequest, "code" | "language" | "timeoutMs"> & {
  readonly maxToolCalls?: number;
};

/** What came of it. */
export type EngineResult = Pick<
  ExecuteResult,
  "value" | "stdout" | "stderr" | "toolCalls" | "durationMs"
>;

/** Runs code that calls `tools`. Rejects as `Runtime.execute` does. */
export interface CodeEngine {
  execute(
    params: EngineParams,
    tools: ToolGateway,
    options?: ExecuteOptions,
  ): Promise<EngineResult>;
}

/** An engine over a runtime; other members of a request are the same for all. */
export function codeEngine(
  runtime: Pick<Runtime, "execute">,
  fixed: Pick<ExecuteRequest, "profile" | "limits" | "requireEnforced"> = {},
): CodeEngine {
  return {
    async execute({ maxToolCalls, ...params }, gateway, options) {
      const limits = { ...fixed.limits, ...(maxToolCalls !== undefined && { maxToolCalls }) };
      const request = { ...fixed, ...params, gateway, limits };
      const result = await runtime.execute(request, options);
      const { value, stdout, stderr, toolCalls, durationMs } = result;
      return { value, stdout, stderr, toolCalls, durationMs };
    },
  };
}
