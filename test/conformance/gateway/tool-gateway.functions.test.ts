/**
 * The contract of tool gateways, kept in process, over functions.
 */
import { CallBudget } from "../../../worker/gateway/budget.ts";
import { createFunctionGateway } from "../../../worker/gateway/functions.ts";
import { allowed } from "./suite-tools.ts";
import { describeToolGateway } from "./tool-gateway.ts";

describeToolGateway("functions", async ({ tools, limits }) => ({
  gateway: createFunctionGateway(tools.list, { allowed, budget: new CallBudget(limits) }),
  [Symbol.asyncDispose]: async () => undefined,
}));
