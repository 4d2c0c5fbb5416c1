/**
 * Where the children of a template connect: each says by a word whose the connection is, and what
 * for.
 */
import { constants } from "node:fs";
import { type FileHandle, chmod, chown, open } from "node:fs/promises";
import { type Server, type Socket, createServer } from "node:net";
import { SandboxError } from "../../sandbox.ts";

/** What a child has a connection for: how it ended, its wake channel, stdout and stderr. */
const roles = ["report", "wake", "out", "err"] as const;
type Role = (typeof roles)[number];

/** The connections of one child. */
export type ChildSockets = Readonly<Record<Role, Socket>>;

/** Bytes of the line that says whose a connection is. */
const maxGreetingBytes = 64;
/** Connections that have not said yet whose they are. */
const maxStrangers = 8;
/** Its name in the template's directory. */
const socketName = "socket";

const newline = 0x0a;

/** A child that is going to connect. Disposing it closes the connections that nobody has taken. */
export interface ExpectedChild extends Disposable {
  /** Fulfils when it has connected for everything. */
  readonly connected: Promise<void>;
  /** Its connections once it has connected, the caller's from then on. */
  take(): ChildSockets;
}

/**
 * One socket for all children of a template. The template can reach it, and its children only until
 * they hide it.
 */
export class TemplateListener implements AsyncDisposable {
  readonly #server: Server;
  readonly #directory: FileHandle;
  readonly #expected = new Map<string, Arriving>();
  readonly #strangers = new Set<Socket>();

  private constructor(server: Server, directory: FileHandle) {
    this.#server = server;
    this.#directory = directory;
    server.on("connection", (socket) => this.#greet(socket));
  }

  /**
   * Listens in a directory. Throws SandboxError.
   *
   * @param ownerId host uid and gid of those who connect, or undefined for the worker's own
   */
  static async open(path: string, ownerId: number | undefined): Promise<TemplateListener> {
    try {
      await using held = new AsyncDisposableStack();
      const directory = held.use(await open(path, constants.O_RDONLY | constants.O_DIRECTORY));
      // The path of a socket may have 107 bytes only (unix(7)); through a descriptor any directory
      // fits.
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

  /** Lets the child in that knows this word. */
  expect(word: string): ExpectedChild {
    const arriving = new Arriving();
    this.#expected.set(word, arriving);
    return {
      connected: arriving.complete,
      take: () => arriving.takeAll(),
      [Symbol.dispose]: () => {
        this.#expected.delete(word);
        arriving.giveUp();
      },
    };
  }

  #greet(socket: Socket): void {
    // Its end says all there is to know.
    socket.on("error", () => undefined);
    if (this.#strangers.size >= maxStrangers) return void socket.destroy();
    this.#strangers.add(socket);
    socket.once("close", () => this.#strangers.delete(socket));
    let held: Buffer = Buffer.alloc(0);
    const take = (chunk: Buffer): void => {
      held = Buffer.concat([held, chunk]);
      const end = held.indexOf(newline);
      if (end === -1 && held.byteLength < maxGreetingBytes) return;
      socket.off("data", take).pause();
      this.#strangers.delete(socket);
      const greeting = held.subarray(0, Math.min(end, maxGreetingBytes)).toString("latin1");
      if (end === -1 || !this.#assign(socket, greeting)) return void socket.destroy();
      if (held.byteLength > end + 1) socket.unshift(held.subarray(end + 1));
    };
    socket.on("data", take);
  }

  #assign(socket: Socket, greeting: string): boolean {
    const [word = "", role] = greeting.split(" ");
    const known = roles.find((candidate) => candidate === role);
    return known !== undefined && (this.#expected.get(word)?.take(known, socket) ?? false);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#strangers) socket.destroy();
    for (const arriving of this.#expected.values()) arriving.giveUp();
    await new Promise((resolve) => this.#server.close(resolve));
    await this.#directory.close();
  }
}

/** One child on its way in. */
class Arriving {
  readonly #sockets = new Map<Role, Socket>();
  readonly #complete = Promise.withResolvers<void>();

  get complete(): Promise<void> {
    return this.#complete.promise;
  }

  /** False for a connection that is there already. */
  take(role: Role, socket: Socket): boolean {
    if (this.#sockets.has(role)) return false;
    this.#sockets.set(role, socket);
    if (this.#sockets.size === roles.length) this.#complete.resolve();
    return true;
  }

  takeAll(): ChildSockets {
    const all = Object.fromEntries(this.#sockets) as ChildSockets;
    this.#sockets.clear();
    return all;
  }

  giveUp(): void {
    for (const socket of this.#sockets.values()) socket.destroy();
  }
}
