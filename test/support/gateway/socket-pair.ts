/**
 * Two ends of a stream socket, as a sandbox and its worker have them.
 */
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { type Socket, connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** The caller destroys both ends. */
export async function socketPair(): Promise<readonly [inside: Socket, outside: Socket]> {
  const directory = await mkdtemp(join(tmpdir(), "gateway-"));
  const server = createServer({ pauseOnConnect: true });
  try {
    server.listen(join(directory, "socket"));
    await once(server, "listening");
    const inside = connect(join(directory, "socket"));
    const [[outside]] = await Promise.all([once(server, "connection"), once(inside, "connect")]);
    return [inside, outside as Socket];
  } finally {
    server.close();
    await rm(directory, { recursive: true });
  }
}
