/**
 * Ports for programs that cannot choose one themselves.
 */
import { once } from "node:events";
import { createServer } from "node:net";

/**
 * Below those that the kernel gives to outgoing connections: what is free stays free until it is
 * used.
 */
const firstPort = 20_000;
const lastPort = 32_000;

/** Distinct loopback ports on which nobody listens now. */
export async function freePorts(count: number): Promise<readonly number[]> {
  const ports = new Set<number>();
  while (ports.size < count) {
    const port = firstPort + Math.floor(Math.random() * (lastPort - firstPort));
    if (!ports.has(port) && (await isFree(port))) ports.add(port);
  }
  return [...ports];
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer();
  try {
    server.listen(port, "127.0.0.1");
    await once(server, "listening");
    return true;
  } catch {
    return false; // once() throws what "error" says: somebody listens there
  } finally {
    server.close();
  }
}
