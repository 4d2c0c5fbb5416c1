/**
 * A runtime as the engine of a code-mode toolkit, which knows no profiles and no limits but calls.
 */
import type { ToolGateway } from "../../gateway/gateway.ts";
import type { ExecuteOptions } from "./backend.ts";
import { RuntimeError } from "./errors.ts";
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

/** Texts of engines for what ends code: what they tell apart. */
const texts: Readonly<Record<string, string>> = {
  TIMEOUT: "limit exceeded",
  RESOURCE_LIMIT: "limit exceeded",
  SANDBOX_VIOLATION: "code execution",
};

/** The end of code for a limit, or for what it did. The cause is the runtime's error. */
export class EngineError extends Error {
  constructor(text: string, cause: RuntimeError) {
    super(`${text}: ${cause.message}`, { cause });
    this.name = "EngineError";
  }
}

function engineError(error: unknown): unknown {
  if (!(error instanceof RuntimeError)) return error;
  const text = texts[error.code];
  return text === undefined ? error : new EngineError(text, error);
}

/**
 * Runs code that calls `tools`. Rejects with EngineError for what ended it, else as
 * `Runtime.execute` does.
 */
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
      const request = { profile: "standard", ...fixed, ...params, gateway, limits } as const;
      const result = await runtime.execute(request, options).catch((error: unknown) => {
        throw engineError(error);
      });
      const { value, stdout, stderr, toolCalls, durationMs } = result;
      return { value, stdout, stderr, toolCalls, durationMs };
    },
  };
}
