/**
 * Connections of the worker to what listens inside a sandbox.
 */
import { once } from "node:events";
import { connect } from "node:net";
import { createInterface } from "node:readline";
import { buffer } from "node:stream/consumers";
import { expect, onTestFinished, test } from "vitest";
import { networkField, toNetwork } from "../../../worker/protocol/network-rules.ts";
import type { NamespaceSockets, OpenNetwork } from "../../../worker/sandbox/network/sockets.ts";
import { builtInProfiles } from "../../../worker/sandbox/profile.ts";
import { openNetworkPlace } from "../../support/sandboxes/network-place.ts";
import { shared } from "../../support/shared.ts";

const never = AbortSignal.any([]);
const place = shared(() => openNetworkPlace());

/** Serves one port, and another that accepts nothing; prints both. */
const servers = `
import socket
full = socket.create_server(("127.0.0.1", 0), backlog=0)
server = socket.create_server(("127.0.0.1", 0))
print(server.getsockname()[1], full.getsockname()[1], flush=True)
while True:
    connection, _ = server.accept()
    with connection:
        connection.sendall(b"hello " + connection.recv(100))
`;

type Place = Awaited<ReturnType<typeof openNetworkPlace>>;

/** A sandbox with these servers, and the worker's way into it. */
async function served({ backend }: Place) {
  const inside = Promise.withResolvers<NamespaceSockets>();
  const open = async (sockets: NamespaceSockets): Promise<OpenNetwork> => {
    const opened = await sockets.open({ tcp: [], udp: [] }, never);
    inside.resolve(sockets);
    return {
      usage: { connections: 0, sentBytes: 0, receivedBytes: 0, refused: 0, refusals: [] },
      connections: { open: 0, follow: () => undefined },
      [Symbol.asyncDispose]: () => Promise.resolve(opened[Symbol.dispose]()),
    };
  };
  const network = toNetwork(networkField.parse({ allow: ["api.example.com"] }));
  const sandbox = await backend.acquire(
    {
      profile: { ...builtInProfiles.get("standard")!, network },
      ...{ memoryBound: "address-space", mounts: [], devices: [] },
      environment: new Map([["PATH", "/usr/bin"]]),
      network: { files: new Map(), environment: new Map(), open },
    },
    never,
  );
  onTestFinished(() => sandbox[Symbol.asyncDispose]());
  const execution = await sandbox.start({ argv: ["/usr/bin/python3", "-c", servers] });
  const [line] = (await once(createInterface({ input: execution.stdout }), "line")) as string[];
  const [port, fullPort] = line!.split(" ").map(Number);
  return { sockets: await inside.promise, execution, port: port!, fullPort: fullPort! };
}

test("a port of a sandbox is connected to by the worker, and by nobody else of the host", async (context) => {
  const { sockets, execution, port } = await served(await place(context));
  for (const name of ["one", "two"]) {
    const socket = await sockets.connect(port, never);
    socket.write(name);
    expect((await buffer(socket)).toString()).toBe(`hello ${name}`);
  }
  const outside = connect({ host: "127.0.0.1", port });
  await expect(once(outside, "connect")).rejects.toMatchObject({ code: "ECONNREFUSED" });
  await execution.stop(0);
  await expect(sockets.connect(port, never)).rejects.toMatchObject({ name: "SandboxError" });
});

test("a port that accepts nothing holds up neither the worker nor other connections", async (context) => {
  const { sockets, port, fullPort } = await served(await place(context));
  const attempts = Array.from({ length: 3 }, () => sockets.connect(fullPort, never));
  const ended = await Promise.allSettled(attempts);
  for (const one of ended) if (one.status === "fulfilled") one.value.destroy();
  const reasons = ended.flatMap((one) => (one.status === "rejected" ? [one.reason as Error] : []));
  expect(reasons.length).toBeGreaterThan(0);
  for (const { cause } of reasons) expect((cause as Error).message).toMatch(/timed out/);
  await expect(sockets.connect(1, never)).rejects.toMatchObject({ name: "SandboxError" });
  const aborted = AbortSignal.abort(new Error("not wanted any more"));
  await expect(sockets.connect(port, aborted)).rejects.toThrow("not wanted any more");
  const socket = await sockets.connect(port, never);
  socket.end("one");
  expect((await buffer(socket)).toString()).toBe("hello one");
});
