import { once } from "node:events";
import { randomBytes } from "node:crypto";
import { buffer } from "node:stream/consumers";
import { setImmediate as nextTurn } from "node:timers/promises";
import { type AddressInfo, type Server, type Socket, connect, createServer } from "node:net";
import { connect as connectTls } from "node:tls";
import { expect, onTestFinished, test, vi } from "vitest";
import { SandboxNames } from "../../../worker/egress/names.ts";
import { NetworkRecord } from "../../../worker/egress/record.ts";
import { Connections, reset } from "../../../worker/egress/tcp.ts";
import { networkField, toNetwork } from "../../../worker/protocol/network-rules.ts";
import type { EndedConnection } from "../../../worker/sandbox/network/sockets.ts";
import { systemClock } from "../../../worker/support/clock.ts";

async function listen(server: Server, host: string, port = 0): Promise<number> {
  server.listen(port, host);
  await once(server, "listening");
  onTestFinished(() => void server.close());
  return (server.address() as AddressInfo).port;
}

/** Bytes of a connection from inside that the worker may hold: those of reads on both sides. */
const maxHeldBytes = 256 * 1024;

/** Connections to a server of the test, by the name a.example.com. */
async function connectionsTo(serve: (socket: Socket) => void) {
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
  const chunks: Buffer[] = [];
  const door = createServer({ pauseOnConnect: true, allowHalfOpen: true }, (client) => {
    const push = client.push.bind(client);
    client.push = (chunk: Buffer | null) => {
      if (chunk !== null) chunks.push(chunk);
      return push(chunk);
    };
    connections.take(client);
  });
  await listen(door, inside, port);
  const connectClient = (): Socket => {
    const client = connect({ host: inside, port });
    onTestFinished(() => void client.destroy());
    client.on("error", () => undefined);
    return client;
  };
  return { connectClient, port, record, ended, gone, chunks };
}

/** The bytes that passed, once there are no more. */
async function untilHeldUp(count: () => number): Promise<number> {
  let passed = 0;
  // All are in this process: without progress for so many turns there will be none.
  for (let idle = 0; passed === 0 || idle < 50; idle++) {
    await nextTurn();
    if (count() > passed) idle = 0;
    passed = count();
  }
  return passed;
}

function echo(socket: Socket): void {
  socket.on("error", () => undefined);
  socket.pipe(socket);
}

/** The first message of a program's TLS, for this name. */
async function helloFor(servername: string): Promise<Buffer> {
  const server = createServer();
  const port = await listen(server, "127.0.0.1");
  const program = connectTls({ host: "127.0.0.1", port, servername });
  program.on("error", () => undefined);
  const [socket] = (await once(server, "connection")) as [Socket];
  const [hello] = (await once(socket, "data")) as [Buffer];
  socket.destroy();
  return hello;
}

test("TLS may begin with the name of the connection, in each of its bits", async () => {
  const { connectClient, ended, gone } = await connectionsTo(echo);
  const hello = await helloFor("a.example.com");
  const other = Buffer.from(hello);
  // Servers see another name, which some parsers read as the same.
  other[other.indexOf("a.example.com")]! |= 0x80;
  for (const [bytes, refusal] of [
    [hello, undefined],
    [other, "sni"],
  ] as const) {
    const client = connectClient();
    client.write(bytes);
    // The echo of a hello is no answer to it, and a refusal is a reset.
    client.once("data", () => client.destroy());
    await vi.waitFor(() => expect(ended).toHaveLength(1));
    expect(ended.pop()?.refusal).toBe(refusal);
  }
  gone.abort();
});

test("connections that are open end with the sandbox, before its disposal goes on", async () => {
  const { connectClient, port, ended, gone } = await connectionsTo(echo);
  const client = connectClient();
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
  const { connectClient, record } = await connectionsTo((socket) => {
    socket.on("error", () => undefined);
    socket.end(sent);
  });
  const client = connectClient();
  client.pause();
  await once(client, "connect");
  expect(await untilHeldUp(() => record.receivedBytes)).toBeLessThan(sent.byteLength);
  expect(sent.equals(await buffer(client))).toBe(true);
  expect(record.receivedBytes).toBe(sent.byteLength);
});

test("a host that does not read holds the client up, and gets every byte in its order", async () => {
  const sent = randomBytes(16 * 1024 * 1024);
  const accepted = Promise.withResolvers<Socket>();
  const { connectClient, record, chunks } = await connectionsTo((socket) => {
    accepted.resolve(socket.pause());
  });
  const client = connectClient();
  client.end(sent);
  const host = await accepted.promise;
  expect(await untilHeldUp(() => record.sentBytes)).toBeLessThan(sent.byteLength);
  // The test keeps every chunk: the memory is freed, and not just collected some time.
  const held = (): number => chunks.reduce((sum, { byteLength }) => sum + byteLength, 0);
  expect(held()).toBeLessThanOrEqual(maxHeldBytes);
  let mostHeld = 0;
  host.on("data", () => (mostHeld = Math.max(mostHeld, held())));
  expect(sent.equals(await buffer(host))).toBe(true);
  expect(mostHeld).toBeLessThanOrEqual(maxHeldBytes);
  expect(held()).toBe(0);
  expect(record.sentBytes).toBe(sent.byteLength);
});

test("a connection that is ending is closed by a reset as well, and not dropped open", async () => {
  const port = await listen(
    createServer((socket) => socket.on("error", () => undefined)),
    "127.0.0.1",
  );
  for (const end of [(client: Socket) => void client.end("last"), () => undefined]) {
    const client = connect({ host: "127.0.0.1", port });
    const errors: unknown[] = [];
    client.on("error", (error) => errors.push(error));
    await once(client, "connect");
    end(client);
    const closed = once(client, "close");
    reset(client);
    await closed;
    expect(errors).toEqual([]);
  }
});
