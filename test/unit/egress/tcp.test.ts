import { once } from "node:events";
import { randomBytes } from "node:crypto";
import { buffer } from "node:stream/consumers";
import { setImmediate as nextTurn } from "node:timers/promises";
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

/** Connections to a server of the test, and a client of them. */
async function clientOf(serve: (socket: Socket) => void) {
  const port = await listen(createServer(serve), "127.0.0.1");
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
  return { client, port, record, ended, gone };
}

test("connections that are open end with the sandbox, before its disposal goes on", async () => {
  const { client, port, ended, gone } = await clientOf((socket) => {
    socket.on("error", () => undefined);
    socket.pipe(socket);
  });
  client.write("hello");
  await once(client, "data");
  expect(ended).toEqual([]);
  gone.abort();
  expect(ended).toMatchObject([
    { name: "a.example.com", address: "127.0.0.1", port, sentBytes: 5, receivedBytes: 5 },
  ]);
});

test("a client that does not read holds the server up, and gets every byte in its order", async () => {
  const sent = randomBytes(16 * 1024 * 1024);
  const { client, record } = await clientOf((socket) => {
    socket.on("error", () => undefined);
    socket.end(sent);
  });
  client.pause();
  await once(client, "connect");
  let received = 0;
  // All are in this process: without progress for so many turns there will be none.
  for (let idle = 0; received === 0 || idle < 50; idle++) {
    await nextTurn();
    if (record.receivedBytes > received) idle = 0;
    received = record.receivedBytes;
  }
  expect(received).toBeLessThan(sent.byteLength);
  expect(sent.equals(await buffer(client))).toBe(true);
  expect(record.receivedBytes).toBe(sent.byteLength);
});
