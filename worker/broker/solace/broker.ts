/**
 * The broker adapter for Solace PubSub+, over its own client library.
 *
 * A session is one session of the library with a flow for every queue. The library could reconnect
 * by itself; it is not asked to, because `reconnecting` does so for every broker alike: whatever
 * breaks ends the session.
 */
import type { Broker } from "../broker.ts";
import { warnOfClearText } from "../clear-text.ts";
import { isClearText, parseSolaceHosts } from "./address.ts";
import { type SolaceBrokerOptions, openSession } from "./session.ts";

/** Makes the adapter. Nothing is opened before `connect`. */
export function createSolaceBroker(options: SolaceBrokerOptions): Broker {
  if (isClearText(parseSolaceHosts(options.host) ?? [])) {
    warnOfClearText(options.log, options.host);
  }
  return {
    kind: "solace",
    connect: (tools, signal, carried) => openSession(options, tools, signal, carried),
  };
}
