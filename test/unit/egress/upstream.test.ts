/**
 * Connections to the addresses of a name.
 */
import { type AddressInfo, createServer } from "node:net";
import { once } from "node:events";
import { expect, test } from "vitest";
import { connectUpstream } from "../../../worker/egress/upstream.ts";

test.for([1, 2, 3, 4])("a name with %i addresses is connected to", async (count) => {
  await using server = createServer();
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const addresses = Array.from({ length: count }, (_, n) => `127.0.0.${n + 1}`);
  const parts = {
    resolve: () => Promise.resolve(addresses),
    endpoints: { has: () => Promise.resolve(false) },
  };
  const grant = { allowsPrivate: true } as Parameters<typeof connectUpstream>[1];
  const destination = { kind: "name", name: "three.example", port } as const;
  const { signal } = new AbortController();
  const socket = await connectUpstream(destination, grant, parts, signal);
  expect(socket.remoteAddress).toBe("127.0.0.1");
  socket.destroy();
});
