/**
 * The contract of tool gateways, kept in process, over functions.
 */
import { CallBudget } from "../../../worker/gateway/budget.ts";
import { programFunctions } from "../../support/gateway/program-functions.ts";
import { allowed } from "./suite-tools.ts";
import { describeToolGateway } from "./tool-gateway.ts";

describeToolGateway("functions", async ({ tools, limits }) => ({
  gateway: programFunctions(tools.list, { allowed, budget: new CallBudget(limits) }),
  [Symbol.asyncDispose]: async () => undefined,
}));
