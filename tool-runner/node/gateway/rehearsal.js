/**
 * Uses a gateway that does nothing, before the tool is loaded: V8 has then compiled the client for
 * all children of a template.
 */
import { once } from "node:events";
import { createServer } from "node:net";
import { openClient } from "./client.js";

/** Each once more than V8 needs to compile what is run often. */
const rounds = 20;
/** In the sandbox's own memory. The server removes it. */
const path = "/tmp/rehearsal";

/** Leaves nothing open, and no file. */
export async function rehearseGateway() {
  const server = createServer((socket) => {
    socket.on("data", (chunk) => {
      // A request at a time, which comes in one piece.
      const { id } = JSON.parse(chunk.toString());
      socket.write(
        `{"type":"response","id":"${id}","payload":{"structured":{},"namespaces":[]}}\n`,
      );
    });
    server.once("close", () => socket.destroy());
  });
  server.listen(path);
  await once(server, "listening");
  const client = openClient(path, 1, Symbol("rehearsal"));
  for (let round = 0; round < rounds; round += 1) {
    await client.namespaces();
    await client.call("rehearsal");
  }
  client.close();
  server.close();
}
