/**
 * The gateway's channel as a socket file in the work directory, for sandboxes that inherit no
 * descriptor.
 */
import { type FileHandle, chown, open } from "node:fs/promises";
import { once } from "node:events";
import { type Server, type Socket, createServer } from "node:net";
import { Duplex } from "node:stream";
import { below, openDirectory } from "../../support/files/below.ts";
import { SandboxError, workDirInside } from "../sandbox.ts";

const socketName = "gateway.sock";

/** Where the command connects, for {@link openGatewaySocket}. */
export const gatewayPathInside = `${workDirInside}/${socketName}`;

/**
 * Makes the socket file, which takes one connection and is removed then. The result is the worker's
 * end, paused; the caller destroys it. Throws SandboxError.
 *
 * @param workDir the work directory on the host
 * @param ownerId host uid and gid of the file's owner, or undefined for the worker's own
 */
export async function openGatewaySocket(
  workDir: string,
  ownerId: number | undefined,
): Promise<Duplex> {
  await using opened = new AsyncDisposableStack();
  try {
    const directory = opened.use(await open(workDir, openDirectory));
    const server = createServer();
    // By its descriptor: the path of a socket has at most 107 bytes (unix(7)).
    const path = below(directory, socketName);
    server.listen({ path, backlog: 1 });
    await once(server, "listening");
    opened.defer(() => void server.close());
    if (ownerId !== undefined) await chown(path, ownerId, ownerId);
    opened.move();
    return new GatewayChannel(server, directory);
  } catch (error) {
    throw new SandboxError(`cannot make the gateway's socket in ${workDir}`, { cause: error });
  }
}

/** Reads and writes the first connection. Owns the server, which removes its file as it closes. */
class GatewayChannel extends Duplex {
  readonly #server: Server;
  readonly #connected = Promise.withResolvers<Socket>();
  #socket: Socket | undefined;

  constructor(server: Server, directory: FileHandle) {
    super({ allowHalfOpen: false });
    this.pause();
    this.#server = server;
    server.once("connection", (socket) => this.#connect(socket));
    server.once("close", () => void directory.close().catch(() => undefined));
    // The end of the command is reported by its exit.
    this.on("error", () => undefined);
  }

  override _read(): void {
    void this.#connected.promise.then((socket) => socket.resume());
  }

  override _write(
    chunk: Buffer,
    _encoding: BufferEncoding,
    done: (error?: Error | null) => void,
  ): void {
    void this.#connected.promise.then((socket) => socket.write(chunk, done));
  }

  override _final(done: () => void): void {
    if (this.#socket === undefined) done();
    else this.#socket.end(done);
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#server.close();
    this.#socket?.destroy();
    done(error);
  }

  #connect(socket: Socket): void {
    this.#socket = socket.pause();
    this.#server.close();
    socket.on("data", (chunk: Buffer) => {
      if (!this.push(chunk)) socket.pause();
    });
    socket.once("end", () => this.push(null));
    socket.on("error", () => this.destroy());
    this.#connected.resolve(socket);
  }
}
