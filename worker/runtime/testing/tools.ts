/**
 * The tools that checks call.
 */
import { createFunctionGateway } from "../api/function-gateway.ts";
import { GatewayError, type ToolGateway } from "../../gateway/gateway.ts";
import type { JsonObject } from "../../support/json/json.ts";

/** A gateway over three functions: `math:add`, `text:echo`, `text:fail`. */
export function checkGateway(): ToolGateway {
  return createFunctionGateway([
    tool("math:add", "Adds two numbers", ({ a, b }) => ({ sum: Number(a) + Number(b) })),
    tool("text:echo", "Returns its arguments", (args) => ({ args })),
    tool("text:fail", "Fails", () => {
      throw new GatewayError("TOOL_ERROR", "execute", "It failed");
    }),
  ]);
}

function tool(id: string, description: string, run: (args: JsonObject) => JsonObject) {
  return { id, description, run };
}
