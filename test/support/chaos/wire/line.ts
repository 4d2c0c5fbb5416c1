/**
 * The way between a worker and the broker: everything on it is seen, it can be cut, and what the
 * worker sends can be made to get lost.
 */
import { once } from "node:events";
import { type AddressInfo, type Server, type Socket, connect, createServer } from "node:net";
import type { ChaosHistory, LineEvent, WireEvent } from "../history.ts";
import type { WireReader, WireUnit } from "./wire.ts";

/** Where lines lead, and what becomes of what is sent on them. */
export interface ChaosLinesOptions {
  /** The broker's, on loopback. */
  readonly port: number;
  readonly read: () => WireReader;
  readonly history: ChaosHistory;
}

/** Says of something that a worker sends whether it is to get lost. */
export type Fault = (event: WireEvent, worker: string) => boolean;

/** One line for each worker. */
export class ChaosLines {
  readonly #options: ChaosLinesOptions;
  readonly #faults = new Set<Fault>();

  constructor(options: ChaosLinesOptions) {
    this.#options = options;
  }

  /** Asks about everything that workers send, until the returned object is disposed. */
  during(fault: Fault): Disposable {
    this.#faults.add(fault);
    return { [Symbol.dispose]: () => void this.#faults.delete(fault) };
  }

  /** A line for a worker. The caller owns it. */
  async open(worker: string): Promise<ChaosLine> {
    const { history } = this.#options;
    const tell = (event: WireEvent, isLost: boolean): void =>
      history.tell({ ...event, worker, isLost } satisfies LineEvent);
    const passes = ({ events }: WireUnit): boolean => {
      const isLost = events.some((event) => this.#isFaulty(event, worker));
      for (const event of events) tell(event, isLost);
      return !isLost;
    };
    const hears = ({ events }: WireUnit): void => {
      for (const event of events) tell(event, false);
    };
    return ChaosLine.open({ ...this.#options, passes, hears });
  }

  #isFaulty(event: WireEvent, worker: string): boolean {
    return [...this.#faults].some((fault) => fault(event, worker));
  }
}

interface LineOptions extends Pick<ChaosLinesOptions, "port" | "read"> {
  /** Told what the worker sends, before it goes on; says whether it does. */
  readonly passes: (unit: WireUnit) => boolean;
  /** Told what the broker sends. */
  readonly hears: (unit: WireUnit) => void;
}

/** A line. Disposing cuts it for good. */
export class ChaosLine implements AsyncDisposable {
  /** Where the worker finds the broker, on loopback. */
  readonly port: number;
  readonly #server: Server;
  /** The worker's ends of its connections. */
  readonly #near = new Set<Socket>();
  /** The broker's. */
  readonly #far = new Set<Socket>();
  #isClosed = false;

  private constructor(server: Server, options: LineOptions) {
    this.port = (server.address() as AddressInfo).port;
    this.#server = server;
    server.on("connection", (near) => this.#join(near, options));
  }

  static async open(options: LineOptions): Promise<ChaosLine> {
    const server = createServer({ noDelay: true });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    return new ChaosLine(server, options);
  }

  /** Breaks every connection; new ones are let through. */
  cut(): void {
    for (const near of this.#near) near.destroy();
  }

  /** Breaks every connection, and new ones until `reopen`. */
  close(): void {
    this.#isClosed = true;
    this.cut();
  }

  reopen(): void {
    this.#isClosed = false;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = once(this.#server, "close");
    this.#server.close();
    for (const socket of [...this.#near, ...this.#far]) socket.destroy();
    await closed;
  }

  #join(near: Socket, { port, read, passes, hears }: LineOptions): void {
    if (this.#isClosed) return void near.destroy();
    const far = connect({ host: "127.0.0.1", port, noDelay: true });
    keep(near, this.#near);
    keep(far, this.#far);
    const reader = read();
    near.on("data", (chunk: Buffer) => {
      for (const unit of reader.outward(chunk)) {
        const goesOn = passes(unit);
        // It may have been cut by what came over it.
        if (near.destroyed) return;
        if (goesOn) far.write(unit.bytes);
      }
    });
    far.on("data", (chunk: Buffer) => {
      for (const unit of reader.inward(chunk)) {
        hears(unit);
        if (!near.destroyed) near.write(unit.bytes);
      }
    });
    // What the broker sends until it notices counts as handed out.
    near.on("close", () => far.end());
    far.on("close", () => near.destroy());
  }
}

function keep(socket: Socket, sockets: Set<Socket>): void {
  sockets.add(socket);
  socket.on("error", () => undefined).on("close", () => sockets.delete(socket));
}
