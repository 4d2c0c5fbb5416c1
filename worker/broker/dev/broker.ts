/**
 * The broker adapter for the DevBroker that agents bring along for development.
 */
import type { Broker } from "../broker.ts";
import { type DevBrokerOptions, openSession } from "./session.ts";

/** Makes the adapter. Nothing is opened before `connect`. */
export function createDevBroker(options: DevBrokerOptions): Broker {
  return {
    kind: "dev",
    connect: (tools, signal) => openSession(options, tools, signal),
  };
}
