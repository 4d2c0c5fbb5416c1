/**
 * A cable that can be cut: connections through it break as they do when a network does.
 */
import { once } from "node:events";
import { type AddressInfo, type Socket, connect, createServer } from "node:net";

/** Passes bytes on to a port, of this host unless told. Disposing cuts every connection. */
export interface Cable extends AsyncDisposable {
  readonly port: number;
  /** Breaks every connection; new ones are passed on. */
  cut(): void;
  /** Breaks every connection, and new ones as soon as they are made. */
  unplug(): void;
  /** Passes new connections on again. */
  plugIn(): void;
}

export async function openCable(targetPort: number, targetHost = "127.0.0.1"): Promise<Cable> {
  const sockets = new Set<Socket>();
  const keep = (socket: Socket): void => {
    sockets.add(socket);
    socket.on("error", () => {});
    socket.on("close", () => sockets.delete(socket));
  };
  let isUnplugged = false;
  const server = createServer({ noDelay: true }, (near) => {
    if (isUnplugged) {
      near.destroy();
      return;
    }
    const far = connect({ host: targetHost, port: targetPort, noDelay: true });
    keep(near);
    keep(far);
    near.pipe(far).pipe(near);
    near.on("close", () => far.destroy());
    far.on("close", () => near.destroy());
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const cut = (): void => {
    for (const socket of sockets) socket.destroy();
  };
  return {
    port: (server.address() as AddressInfo).port,
    cut,
    unplug() {
      isUnplugged = true;
      cut();
    },
    plugIn() {
      isUnplugged = false;
    },
    async [Symbol.asyncDispose]() {
      server.close();
      cut();
      await once(server, "close");
    },
  };
}
