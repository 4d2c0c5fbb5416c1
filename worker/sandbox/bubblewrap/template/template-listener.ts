/**
 * The socket that the children of a template connect to. The first line of each connection names
 * the child and the purpose.
 */
import { constants } from "node:fs";
import { type FileHandle, chmod, chown, open } from "node:fs/promises";
import { type Server, type Socket, createServer } from "node:net";
import { SandboxError } from "../../sandbox.ts";
import { readLine } from "../idle/read-line.ts";

/** Purposes of a child's connections: its end, its wake channel, stdout and stderr. */
const roles = ["report", "wake", "out", "err"] as const;
type Role = (typeof roles)[number];
/** That of a further one, which the children of some templates have. */
const gatewayRole = "gateway";

/** The connections of one child. */
export type ChildSockets = Readonly<Record<Role, Socket>> & { readonly gateway?: Socket };

/** Children that may be connecting at a time. */
export const maxArriving = 4;
/** Bound of a connection's first line. */
const maxGreetingBytes = 64;
/** Connections before their first line: all of these children's, and one more of each. */
const maxStrangers = maxArriving * (roles.length + 2);
/** Its name in the template's directory. */
const socketName = "socket";

/** A child that is about to connect. Disposing it closes connections that were not taken. */
export interface ExpectedChild extends Disposable {
  /** Fulfils when it has connected for every purpose. */
  readonly connected: Promise<void>;
  /** Its connections once it has connected; the caller owns them. */
  take(): ChildSockets;
}

/** The template can reach the socket, and its children until they hide it. */
export class TemplateListener implements AsyncDisposable {
  readonly #server: Server;
  readonly #directory: FileHandle;
  readonly #expected = new Map<string, Arriving>();
  readonly #strangers = new Set<Socket>();

  private constructor(server: Server, directory: FileHandle) {
    this.#server = server;
    this.#directory = directory;
    server.on("connection", (socket) => void this.#greet(socket));
  }

  /**
   * Listens in a directory. Throws SandboxError.
   *
   * @param ownerId host uid and gid of the children, or undefined for the worker's own
   */
  static async open(path: string, ownerId: number | undefined): Promise<TemplateListener> {
    try {
      await using held = new AsyncDisposableStack();
      const directory = held.use(await open(path, constants.O_RDONLY | constants.O_DIRECTORY));
      // The path of a socket has at most 107 bytes (unix(7)): any directory fits by descriptor.
      const address = `/proc/self/fd/${directory.fd}/${socketName}`;
      const server = createServer();
      await new Promise<void>((resolve, reject) => {
        server.once("error", reject);
        server.listen(address, resolve);
      });
      server.unref();
      const listener = held.use(new TemplateListener(server, directory));
      await chmod(address, 0o600);
      if (ownerId !== undefined) await chown(address, ownerId, ownerId);
      held.move();
      return listener;
    } catch (error) {
      throw new SandboxError("cannot listen for the children of a template", { cause: error });
    }
  }

  /** Accepts the child that knows this word, with a connection for its gateway if it has one. */
  expect(word: string, hasGateway: boolean): ExpectedChild {
    const arriving = new Arriving(hasGateway ? [...roles, gatewayRole] : roles);
    this.#expected.set(word, arriving);
    return {
      connected: arriving.complete.promise,
      take: () => arriving.takeAll(),
      [Symbol.dispose]: () => {
        this.#expected.delete(word);
        arriving.close();
      },
    };
  }

  async #greet(socket: Socket): Promise<void> {
    // The end of a connection says enough.
    socket.on("error", () => undefined);
    if (this.#strangers.size >= maxStrangers) return void socket.destroy();
    this.#strangers.add(socket);
    const line = await readLine(socket, maxGreetingBytes);
    this.#strangers.delete(socket);
    const [word = "", role] = line?.toString("latin1").split(" ") ?? [];
    const isTaken = this.#expected.get(word)?.add(role, socket) ?? false;
    if (!isTaken) socket.destroy();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#strangers) socket.destroy();
    for (const arriving of this.#expected.values()) arriving.close();
    await new Promise((resolve) => this.#server.close(resolve));
    await this.#directory.close();
  }
}

/** The connections of one child so far. */
class Arriving {
  readonly complete = Promise.withResolvers<void>();
  readonly #roles: readonly string[];
  readonly #sockets = new Map<string, Socket>();

  /** @param roles each of one connection */
  constructor(roles: readonly string[]) {
    this.#roles = roles;
  }

  /** False for an unknown role, or one that has its connection. */
  add(role: string | undefined, socket: Socket): boolean {
    const known = this.#roles.find((candidate) => candidate === role);
    if (known === undefined || this.#sockets.has(known)) return false;
    this.#sockets.set(known, socket);
    if (this.#sockets.size === this.#roles.length) this.complete.resolve();
    return true;
  }

  takeAll(): ChildSockets {
    const all = Object.fromEntries(this.#sockets) as ChildSockets;
    this.#sockets.clear();
    return all;
  }

  close(): void {
    for (const socket of this.#sockets.values()) socket.destroy();
  }
}
