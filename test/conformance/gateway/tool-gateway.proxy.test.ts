/**
 * The contract of tool gateways, kept over a stream socket.
 */
import { CallBudget } from "../../../worker/gateway/budget.ts";
import { createFunctionGateway } from "../../../worker/gateway/functions.ts";
import { ProxyClient } from "../../../worker/gateway/proxy/client.ts";
import { ProxyHost } from "../../../worker/gateway/proxy/host.ts";
import { socketPair } from "../../support/gateway/socket-pair.ts";
import { allowed } from "./suite-tools.ts";
import { describeToolGateway } from "./tool-gateway.ts";

describeToolGateway("proxy", async ({ tools, limits }) => {
  const budget = new CallBudget(limits);
  const served = createFunctionGateway(tools.list, { allowed, budget });
  const [inside, outside] = await socketPair();
  await using stack = new AsyncDisposableStack();
  const host = stack.use(new ProxyHost(outside, served, limits));
  const gateway = stack.use(new ProxyClient(inside, limits));
  host.open();
  const owned = stack.move();
  return { gateway, [Symbol.asyncDispose]: () => owned.disposeAsync() };
});
