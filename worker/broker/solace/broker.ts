/**
 * The broker adapter for Solace PubSub+, over its own client library.
 */
import type { Broker } from "../broker.ts";
import { logEvent } from "../../telemetry/log-event.ts";
import { isClearText, parseSolaceHosts } from "./address.ts";
import { type SolaceBrokerOptions, openSession } from "./session.ts";

export function createSolaceBroker(options: SolaceBrokerOptions): Broker {
  const { host, log } = options;
  if (isClearText(parseSolaceHosts(host) ?? []))
    logEvent(log, "broker.connection_unencrypted", { host });
  return {
    kind: "solace",
    connect: (tools, signal, unsettled) => openSession(options, tools, signal, unsettled),
  };
}
