/**
 * What the tools of a chaos do: they tell a counter that they have begun, and in which worker.
 */
import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { createInterface } from "node:readline";

/** Who runs what: by call, the workers in which its tool began, in order. */
export type Runs = ReadonlyMap<string, readonly string[]>;

/** Listens for tools. Its owner disposes it. */
export interface EffectCounter extends AsyncDisposable {
  /** On loopback. */
  readonly port: number;
  readonly runs: Runs;
}

/** The module `effect` as the tools of one worker find it: says that it has begun, and goes on when it was heard. */
export function effectSource(workerId: string): string {
  return `
import socket, time

def run(port, id):
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall((id + " ${workerId}\\n").encode())
        connection.recv(1)
    time.sleep(0.05)
    return {"id": id}
`;
}

/** Starts to count. */
export async function countEffects(): Promise<EffectCounter> {
  const runs = new Map<string, readonly string[]>();
  const server = createServer((socket) => {
    const lines = createInterface({ input: socket });
    // A tool that is killed does not say goodbye. Its reader passes on what it hears of that.
    for (const end of [socket, lines]) end.on("error", () => undefined);
    lines.once("line", (line) => {
      const [id = "", workerId = ""] = line.split(" ");
      runs.set(id, [...(runs.get(id) ?? []), workerId]);
      socket.end("\n");
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    port: (server.address() as AddressInfo).port,
    runs,
    async [Symbol.asyncDispose]() {
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
