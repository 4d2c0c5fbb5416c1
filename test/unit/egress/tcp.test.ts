import { once } from "node:events";
import { type AddressInfo, type Server, type Socket, connect, createServer } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { SandboxNames } from "../../../worker/egress/names.ts";
import { NetworkRecord } from "../../../worker/egress/record.ts";
import { Connections } from "../../../worker/egress/tcp.ts";
import { networkField, toNetwork } from "../../../worker/protocol/network-rules.ts";
import type { EndedConnection } from "../../../worker/sandbox/network/sockets.ts";
import { systemClock } from "../../../worker/support/clock.ts";

async function listen(server: Server, host: string, port = 0): Promise<number> {
  server.listen(port, host);
  await once(server, "listening");
  onTestFinished(() => void server.close());
  return (server.address() as AddressInfo).port;
}

test("connections that are open end with the sandbox, before its disposal goes on", async () => {
  const echo = createServer((socket: Socket) => {
    socket.on("error", () => undefined);
    socket.pipe(socket);
  });
  const port = await listen(echo, "127.0.0.1");
  const names = new SandboxNames();
  const inside = names.addressOf("a.example.com")!;
  const allow = [{ host: "a.example.com", ports: [port], private: true }];
  const policy = toNetwork(networkField.parse({ allow }));
  if (typeof policy === "string") throw new Error(policy);
  const record = new NetworkRecord(systemClock);
  const ended: EndedConnection[] = [];
  record.follow((connection) => ended.push(connection));
  const gone = new AbortController();
  const connections = new Connections({
    ...{ policy, names, record, signal: gone.signal, onLast: () => undefined, edge: undefined },
    host: {
      resolve: () => Promise.resolve(["127.0.0.1"]),
      endpoints: { has: () => Promise.resolve(false) },
    },
  });
  const door = createServer({ pauseOnConnect: true, allowHalfOpen: true }, (client) =>
    connections.take(client),
  );
  await listen(door, inside, port);
  const client = connect({ host: inside, port });
  onTestFinished(() => void client.destroy());
  client.on("error", () => undefined);
  client.write("hello");
  await once(client, "data");
  expect(ended).toEqual([]);
  gone.abort();
  expect(ended).toMatchObject([
    { name: "a.example.com", address: "127.0.0.1", port, sentBytes: 5, receivedBytes: 5 },
  ]);
});
