/**
 * What the tools of a chaos do: they tell a counter that they have begun, for which request and in
 * which worker.
 */
import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { createInterface } from "node:readline";
import type { ChaosHistory } from "./history.ts";

/** Listens for tools. Its owner disposes it. */
export interface EffectCounter extends AsyncDisposable {
  /** On loopback. */
  readonly port: number;
}

/**
 * The module `effect` as the tools of one worker find it: says that it has begun, goes on when it
 * was heard, takes as long as it is told, and returns the number of its run.
 */
export function effectSource(workerId: string): string {
  return `
import socket, time

def run(port, request, seconds):
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall((request + " ${workerId}\\n").encode())
        number = int(connection.makefile().readline())
    time.sleep(seconds)
    return {"run": number}
`;
}

/** Starts to count. */
export async function countEffects(history: ChaosHistory): Promise<EffectCounter> {
  let runs = 0;
  const server = createServer((socket) => {
    const lines = createInterface({ input: socket });
    // A tool that is killed does not say goodbye. Its reader passes on what it hears of that.
    for (const end of [socket, lines]) end.on("error", () => undefined);
    lines.once("line", (line) => {
      const [request = "", worker = ""] = line.split(" ");
      history.tell({ kind: "began", request, worker, run: ++runs });
      socket.end(`${runs}\n`);
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    port: (server.address() as AddressInfo).port,
    async [Symbol.asyncDispose]() {
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
