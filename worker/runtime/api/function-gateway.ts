/**
 * A gateway over functions for many executions, each of which has limits of its own.
 */
import { CallBudget } from "../../gateway/budget.ts";
import {
  type FunctionTool,
  createFunctionGateway as createGateway,
  functionKind,
} from "../../gateway/functions.ts";
import type { ToolGateway } from "../../gateway/gateway.ts";
import { type GatewayLimits, defaultGatewayLimits } from "../../protocol/tool-calls/limits.ts";

/** Calls of all executions that run at once; others wait. */
export const maxFunctionCalls = 1_000;

/** What bounds one execution is counted for that one. */
const unbounded: GatewayLimits = {
  ...defaultGatewayLimits,
  ...{ maxToolCalls: Infinity, maxChainSteps: Infinity, maxLookups: Infinity },
  ...{ maxConcurrentCalls: maxFunctionCalls, maxOperationsPerSecond: Infinity },
};

/**
 * Tools that are functions of this process, by their ids. Throws TypeError for an id that is none,
 * or that is there twice.
 */
export function createFunctionGateway(tools: readonly FunctionTool[]): ToolGateway {
  const budget = new CallBudget(unbounded, { refusals: Infinity });
  return Object.assign(createGateway(tools, { budget }), { backendKind: functionKind });
}
