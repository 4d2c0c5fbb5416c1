/**
 * The broker adapter for Solace PubSub+, over its own client library.
 */
import type { Broker } from "../broker.ts";
import { warnOfClearText } from "../clear-text.ts";
import { isClearText, parseSolaceHosts } from "./address.ts";
import { type SolaceBrokerOptions, openSession } from "./session.ts";

/** Opens nothing before `connect`. */
export function createSolaceBroker(options: SolaceBrokerOptions): Broker {
  if (isClearText(parseSolaceHosts(options.host) ?? [])) {
    warnOfClearText(options.log, options.host);
  }
  return {
    kind: "solace",
    connect: (tools, signal, unsettled) => openSession(options, tools, signal, unsettled),
  };
}
