/**
 * The contract of tool gateways, kept in process, over a function that runs calls.
 */
import { CallBudget } from "../../../worker/gateway/budget.ts";
import { Catalog } from "../../../worker/gateway/catalog.ts";
import { DirectGateway } from "../../../worker/gateway/direct.ts";
import { allowed } from "./suite-tools.ts";
import { describeToolGateway } from "./tool-gateway.ts";

describeToolGateway("direct", async ({ tools, limits }) => {
  const byId = new Map(tools.list.map((tool) => [tool.id, tool]));
  const gateway = new DirectGateway(
    new Catalog(tools.list),
    async ({ tool, args }, signal) => ({
      structured: await byId.get(tool.id)!.run(args, signal),
      artifacts: [],
    }),
    { allowed, budget: new CallBudget(limits) },
  );
  return { gateway, [Symbol.asyncDispose]: async () => undefined };
});
