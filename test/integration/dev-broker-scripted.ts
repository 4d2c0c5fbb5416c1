/**
 * A server that answers DevBroker commands as a test tells it to: for what a proper server never
 * does.
 */
import { once } from "node:events";
import { type AddressInfo, type Socket, createServer } from "node:net";
import { createInterface } from "node:readline";

/** A command as it came. */
export interface ScriptedCommand {
  readonly cmd: string;
  readonly [field: string]: unknown;
}

/** What to do with a command: a line to send, `cut` the connection, or stay `silent`. */
export type Reaction = { readonly line: string | Buffer } | "cut" | "silent";

/** The answer that says yes. */
export const ok: Reaction = { line: '{"status": "OK"}' };

/** A running server and what it heard, in order. */
export interface ScriptedServer extends AsyncDisposable {
  readonly port: number;
  readonly heard: readonly ScriptedCommand[];
  /** Connections that are open now. */
  readonly connections: number;
  /** Cuts every connection. */
  cut(): void;
}

/**
 * Starts a server; `react` decides each answer (undefined: OK, and TIMEOUT to a RECEIVE after its
 * time).
 */
export async function startScriptedServer(
  react: (command: ScriptedCommand) => Reaction | undefined,
  port = 0,
): Promise<ScriptedServer> {
  const heard: ScriptedCommand[] = [];
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    const isCut = (): void => undefined;
    socket.on("error", isCut);
    socket.on("close", () => sockets.delete(socket));
    // It passes on the errors of what it reads.
    const lines = createInterface({ input: socket }).on("error", isCut);
    lines.on("line", (line) => {
      const command = JSON.parse(line) as ScriptedCommand;
      heard.push(command);
      const reaction =
        react(command) ?? (command.cmd === "RECEIVE" ? timeout(socket, command) : ok);
      if (reaction === "cut") socket.destroy();
      else if (reaction !== "silent") send(socket, reaction.line);
    });
  });
  const cut = (): void => {
    for (const socket of sockets) socket.destroy();
  };
  server.listen(port, "127.0.0.1");
  await once(server, "listening");
  return {
    port: (server.address() as AddressInfo).port,
    heard,
    get connections() {
      return sockets.size;
    },
    cut,
    async [Symbol.asyncDispose]() {
      const closed = once(server, "close");
      server.close();
      cut();
      await closed;
    },
  };
}

function timeout(socket: Socket, command: ScriptedCommand): Reaction {
  setTimeout(() => send(socket, '{"status": "TIMEOUT"}'), command["timeout_ms"] as number).unref();
  return "silent";
}

function send(socket: Socket, line: string | Buffer): void {
  if (socket.destroyed) return;
  socket.write(line);
  socket.write("\n");
}
