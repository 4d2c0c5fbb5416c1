/**
 * Functions as the tools of one program, within its budget.
 */
import { Catalog } from "../../../worker/gateway/catalog.ts";
import { DirectGateway, type DirectOptions } from "../../../worker/gateway/direct.ts";
import { type FunctionTool, functionDispatch } from "../../../worker/gateway/functions.ts";

export function programFunctions(
  tools: readonly FunctionTool[],
  options: DirectOptions,
): DirectGateway {
  return new DirectGateway(new Catalog(tools), functionDispatch(tools), options);
}
