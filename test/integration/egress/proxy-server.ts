/**
 * The proxy of a sandbox on this host's loopback, with real connections behind it.
 */
import { once } from "node:events";
import { type AddressInfo, type Server, type Socket, connect, createServer } from "node:net";
import { onTestFinished } from "vitest";
import { HttpProxy } from "../../../worker/egress/http-proxy.ts";
import { systemClock } from "../../../worker/support/clock.ts";
import { SandboxNames } from "../../../worker/egress/names.ts";
import { NetworkRecord } from "../../../worker/egress/record.ts";
import { Connections } from "../../../worker/egress/tcp.ts";
import { networkField, toNetwork } from "../../../worker/protocol/network-rules.ts";

/** A proxy, and how to speak with it. */
export interface TestProxy {
  readonly port: number;
  readonly record: NetworkRecord;
  /** Sends bytes; what comes back until the proxy ends the connection. */
  exchange(text: string): Promise<string>;
  /** A connection to the proxy, which ends with the test. */
  connect(): Promise<Socket>;
  /** Ends as with the sandbox. */
  end(): void;
}

/** Every name leads to 127.0.0.1. */
export async function startProxy(
  allow: readonly unknown[],
  maxConnections = 64,
): Promise<TestProxy> {
  const policy = toNetwork(networkField.parse({ allow, max_connections: maxConnections }));
  if (typeof policy === "string") throw new Error("no list");
  const [record, ended] = [new NetworkRecord(systemClock), new AbortController()];
  const { signal } = ended;
  const host = {
    resolve: () => Promise.resolve(["127.0.0.1"]),
    endpoints: { has: () => Promise.resolve(false) },
  };
  const connections = new Connections({
    ...{ policy, record, host, signal, names: new SandboxNames(), edge: undefined },
    onLast: () => undefined,
  });
  const proxy = new HttpProxy({ connections, record, maxConnections, signal });
  const server = createServer({ pauseOnConnect: true, allowHalfOpen: true });
  server.on("connection", (client) => proxy.take(client));
  const port = await listen(server);
  onTestFinished(() => ended.abort(new Error("the test is over")));
  const open = async (): Promise<Socket> => {
    const socket = connect(port, "127.0.0.1");
    socket.on("error", () => undefined);
    onTestFinished(() => void socket.destroy());
    await once(socket, "connect");
    return socket;
  };
  return {
    ...{ port, record, connect: open },
    end: () => ended.abort(new Error("the sandbox is gone")),
    exchange: async (text) => {
      const socket = await open();
      let received = "";
      socket.on("data", (chunk) => (received += chunk.toString("latin1")));
      socket.write(text, "latin1");
      await closed(socket);
      return received;
    },
  };
}

/** Waits for its end, by a reset or not. */
export function closed(socket: Socket): Promise<void> {
  return new Promise((resolve) => void socket.once("close", () => resolve()));
}

/** The port of a server on 127.0.0.1, which ends with the test. */
export async function listen(server: Server): Promise<number> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => void server.close());
  return (server.address() as AddressInfo).port;
}
