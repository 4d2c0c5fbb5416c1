/**
 * The ways to the broker of the harness, so that tests can go each.
 */
import { connect } from "node:net";
import type { Duplex } from "node:stream";
import { WebSocket, createWebSocketStream } from "ws";
import type { SmfBroker } from "../../../harness/fakes/solace/broker.ts";

export const transports = ["tcp", "ws"] as const;

export type Transport = (typeof transports)[number];

/** Where a broker is reached. Throws when it does not listen for WebSockets, and should. */
export function urlOver(transport: Transport, broker: SmfBroker): string {
  const url = transport === "tcp" ? broker.url : broker.webUrl;
  if (url === undefined) throw new Error("the broker does not listen for WebSockets");
  return url;
}

/**
 * A client that says what it is told, in messages of its own where there are messages, and reads
 * when it is asked to.
 */
export function openRaw(transport: Transport, broker: SmfBroker): Duplex {
  const stream = transport === "tcp" ? connect(broker.port, broker.host) : openWeb(broker);
  return stream.on("error", () => {});
}

function openWeb(broker: SmfBroker): Duplex {
  const webSocket = new WebSocket(urlOver("ws", broker), "smf.solacesystems.com");
  return createWebSocketStream(webSocket, { allowHalfOpen: false });
}
