/**
 * The broker adapter for the DevBroker, for development.
 */
import type { Broker } from "../broker.ts";
import { type DevBrokerOptions, openSession } from "./session.ts";

export function createDevBroker(options: DevBrokerOptions): Broker {
  return {
    kind: "dev",
    connect: (tools, signal) => openSession(options, tools, signal),
  };
}
