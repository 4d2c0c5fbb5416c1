/**
 * A gateway over functions of this process, for users of the library.
 */
import { InvocationError } from "../protocol/errors.ts";
import type { JsonObject } from "../support/json/json.ts";
import { abortable } from "../support/timeout.ts";
import { CallBudget } from "./budget.ts";
import { Catalog, type CatalogEntry } from "./catalog.ts";
import { DirectGateway } from "./direct.ts";
import type { Dispatch } from "./dispatch.ts";
import { GatewayError, type ToolGateway } from "./gateway.ts";
import type { GatewayLimits } from "./limits.ts";
import { ToolSearch } from "./search.ts";

/** A tool that is a function. */
export interface FunctionTool extends CatalogEntry {
  /**
   * Gets a copy of the arguments. What it throws is the program's error. On abort the call ends,
   * though the function may go on.
   */
  run(args: JsonObject, signal: AbortSignal): JsonObject | Promise<JsonObject>;
}

/** Options of {@link createFunctionGateway}. */
export interface FunctionGatewayOptions {
  /** Ids, `namespace:*`, or `*`; all tools by default. */
  readonly allowed?: readonly string[];
}

/** The gateway serves many programs: what each may do is bounded by its execution. */
const unlimited: GatewayLimits = {
  ...{ maxToolCalls: Infinity, maxChainSteps: Infinity, maxConcurrentCalls: Infinity },
  ...{ maxDepth: Infinity, maxLookups: Infinity },
  ...{ maxOperationsPerSecond: Infinity, maxArtifactBytes: 0 },
};

/**
 * Many executions may use it at once. Throws TypeError for a wrong id, an id twice, too many tools,
 * or a text in `allowed` that is no pattern.
 */
export function createFunctionGateway(
  tools: readonly FunctionTool[],
  { allowed = ["*"] }: FunctionGatewayOptions = {},
): ToolGateway {
  const catalog = new Catalog(tools);
  const search = new ToolSearch(catalog);
  const dispatch = functionDispatch(tools);
  // A budget of its own for each operation: refusals of one program never add up to the next.
  const gateway = (): ToolGateway =>
    new DirectGateway(catalog, dispatch, { allowed, search, budget: new CallBudget(unlimited) });
  gateway();
  return {
    searchTools: (...given) => gateway().searchTools(...given),
    listNamespaces: (...given) => gateway().listNamespaces(...given),
    describeTool: (...given) => gateway().describeTool(...given),
    listToolExamples: (...given) => gateway().listToolExamples(...given),
    runTool: (...given) => gateway().runTool(...given),
    runChain: (...given) => gateway().runChain(...given),
  };
}

/** Runs calls by the functions. */
export function functionDispatch(tools: readonly FunctionTool[]): Dispatch {
  const byId = new Map(tools.map((tool) => [tool.id, tool]));
  return async ({ tool: { id }, args }, signal) => {
    const running = Promise.try(async () => byId.get(id)?.run(args, signal) ?? {});
    const structured = await abortable(running, signal).catch((error: unknown) => {
      throw failureOf(error);
    });
    return { structured, artifacts: [], backend: "function" };
  };
}

function failureOf(error: unknown): GatewayError | InvocationError {
  if (error instanceof GatewayError || error instanceof InvocationError) return error;
  const message = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
  return new GatewayError("EXECUTION_ERROR", "execute", message, { cause: error });
}
