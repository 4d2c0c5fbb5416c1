/**
 * Programs for backends of the runtime, and tools that they call.
 */
import type { FunctionTool } from "../../../worker/gateway/functions.ts";
import type { ExecuteOptions, RuntimeBackend } from "../../../worker/runtime/api/backend.ts";
import { RuntimeError } from "../../../worker/runtime/api/errors.ts";
import type { ExecuteRequest } from "../../../worker/runtime/api/request.ts";
import type { ExecuteResult } from "../../../worker/runtime/api/result.ts";
import { gatewayOf } from "../gateway/raw-program.ts";

/** `math:add`, `text:echo`, and `text:fail`. */
export const usualTools: readonly FunctionTool[] = [
  {
    id: "math:add",
    description: "Adds two numbers.",
    examples: [{ description: "one and two", args: { a: 1, b: 2 } }],
    run: ({ a, b }) => ({ sum: Number(a) + Number(b) }),
  },
  { id: "text:echo", run: (args) => args },
  {
    id: "text:fail",
    run: () => {
      throw new Error("no luck");
    },
  },
];

/** Executes code, by the usual tools if the request brings no gateway. */
export function execute(
  backend: RuntimeBackend,
  code: string,
  request: Partial<ExecuteRequest> = {},
  options: ExecuteOptions = {},
): Promise<ExecuteResult> {
  return backend.execute({ code, gateway: gatewayOf(...usualTools), ...request }, options);
}

/** The error of code that fails. */
export async function failure(executing: Promise<unknown>): Promise<RuntimeError> {
  const error = await executing.then(
    (value) => new Error(`it succeeded: ${JSON.stringify(value)}`),
    (reason: unknown) => reason,
  );
  if (error instanceof RuntimeError) return error;
  throw error;
}
