/**
 * A gateway over functions of this process, for users of the library.
 */
import { InvocationError } from "../protocol/errors.ts";
import type { JsonObject } from "../support/json/json.ts";
import { abortable } from "../support/timeout.ts";
import { Catalog, type CatalogEntry } from "./catalog.ts";
import { DirectGateway, type DirectOptions } from "./direct.ts";
import { GatewayError } from "./gateway.ts";

/** A tool that is a function. */
export interface FunctionTool extends CatalogEntry {
  /**
   * Gets a copy of the arguments. What it throws is the program's error. On abort the call ends,
   * though the function may go on.
   */
  run(args: JsonObject, signal: AbortSignal): JsonObject | Promise<JsonObject>;
}

/** The kind of backend that a function is, in records. */
export const functionKind = "function";

/** Throws TypeError as Catalog and DirectGateway do. */
export function createFunctionGateway(
  tools: readonly FunctionTool[],
  options: DirectOptions = {},
): DirectGateway {
  const byId = new Map(tools.map((tool) => [tool.id, tool]));
  const dispatch = async (
    { tool: { id }, args }: { readonly tool: CatalogEntry; readonly args: JsonObject },
    signal: AbortSignal,
  ) => {
    const running = Promise.try(async () => byId.get(id)?.run(args, signal) ?? {});
    const structured = await abortable(running, signal).catch((error: unknown) => {
      throw failureOf(error);
    });
    return { structured, artifacts: [], backend: functionKind };
  };
  return new DirectGateway(new Catalog(tools), dispatch, options);
}

function failureOf(error: unknown): GatewayError | InvocationError {
  if (error instanceof GatewayError || error instanceof InvocationError) return error;
  const message = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
  return new GatewayError("EXECUTION_ERROR", "execute", message, { cause: error });
}
