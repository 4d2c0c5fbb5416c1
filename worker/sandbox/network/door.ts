/**
 * Sockets of this process inside sandboxes, by a program that enters their namespaces (door.py,
 * inside.py, native/).
 *
 * It hands sockets over as Node hands handles to a child, which is a format of Node's own
 * (`lib/internal/child_process.js`): this file and door.py are the only ones that know it.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import type { Socket as DatagramSocket } from "node:dgram";
import { Server, Socket } from "node:net";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { abortable } from "../../support/timeout.ts";
import { SandboxError } from "../sandbox.ts";
import type {
  NamespaceSockets,
  OpenNetwork,
  OpenedSockets,
  SandboxNetwork,
  SocketPlaces,
} from "./sockets.ts";

/** Milliseconds for one request to the door; it takes a few. */
const openTimeoutMs = 5_000;

/** Most requests that wait for the door. */
const maxWaiting = 1_024;

/** Bytes that are kept of what the door writes to stderr. */
const maxComplaintBytes = 4_096;

/** By Node's name for a processor, that of uname(2). */
const machines: Partial<Record<NodeJS.Architecture, string>> = { x64: "x86_64", arm64: "aarch64" };

/** How the door is started. */
export interface DoorOptions {
  /** A Python of 3.9 or later. */
  readonly pythonBin: string;
  /** uid and gid of the sandboxes, or undefined for the worker's own. */
  readonly uid: number | undefined;
  /** The part of it that is native; where it cannot be loaded, Python does the same by forks. */
  readonly nativePath?: string;
}

/** A sandbox with a separate network namespace, whose command waits. */
export interface HeldSandbox {
  /** Its first process, as this host numbers it. */
  readonly pid: number;
  /** The number of its network namespace, namespaces(7). */
  readonly namespace: number;
  /** Whether the door brings its loopback interface up; else the door waits for that. */
  readonly raisesLoopback: boolean;
}

/**
 * Opens the network of a sandbox whose command has not started. Throws SandboxError with
 * `isEgress`.
 */
export async function openNetwork(
  network: SandboxNetwork,
  door: Door,
  sandbox: HeldSandbox,
  signal: AbortSignal = AbortSignal.any([]),
): Promise<OpenNetwork> {
  try {
    return await network.open(door.into(sandbox), signal);
  } catch (error) {
    signal.throwIfAborted();
    throw new SandboxError("a sandbox has no network, and was not started", {
      cause: error,
      isEgress: true,
    });
  }
}

type Handle = Server | DatagramSocket | Socket;

/** A request to the door: listening sockets, or one that is connected to a port. */
interface Wanted extends SocketPlaces {
  readonly connect: readonly number[];
}

/** A message of the door; `index` comes with a handle. */
interface Message {
  readonly id: number;
  readonly index?: number;
  readonly error?: string;
}

interface Waiting {
  readonly handles: Handle[];
  missing: number;
  readonly finished: PromiseWithResolvers<void>;
}

/** Starts its program with the first sandbox, and again after its end. */
export class Door implements AsyncDisposable {
  readonly #options: DoorOptions;
  readonly #waiting = new Map<number, Waiting>();
  #child: ChildProcess | undefined;
  #complaint = "";
  #lastId = 0;
  #isDisposed = false;

  constructor(options: DoorOptions) {
    this.#options = options;
  }

  /** The sockets of one sandbox. */
  into(sandbox: HeldSandbox): NamespaceSockets {
    return {
      open: async (places, signal) => {
        const handles = await this.#ask(sandbox, { ...places, connect: [] }, signal);
        return opened(handles, places);
      },
      connect: async (port, signal) => {
        const wanted = { tcp: [], udp: [], connect: [port] };
        const [socket] = await this.#ask(sandbox, wanted, signal);
        return socket as Socket;
      },
    };
  }

  /** As many handles as are wanted, in their order. */
  async #ask(
    sandbox: HeldSandbox,
    wanted: Wanted,
    signal: AbortSignal,
  ): Promise<readonly Handle[]> {
    if (this.#isDisposed) throw new SandboxError("the door to networks of sandboxes is closed");
    if (this.#waiting.size >= maxWaiting)
      throw new SandboxError("too many sandboxes wait for their network");
    const id = ++this.#lastId;
    const missing = wanted.tcp.length + wanted.udp.length + wanted.connect.length;
    const waiting: Waiting = { handles: [], missing, finished: Promise.withResolvers() };
    this.#waiting.set(id, waiting);
    try {
      const child = (this.#child ??= this.#start());
      child.send({ id, ...sandbox, ...wanted }, (error) => {
        if (error !== null) waiting.finished.reject(error);
      });
      const bounded = AbortSignal.any([signal, AbortSignal.timeout(openTimeoutMs)]);
      await abortable(waiting.finished.promise, bounded).catch((error: unknown) => {
        // A door that is stuck serves no request; the next sandbox starts another.
        if (!signal.aborted && bounded.aborted) child.kill("SIGKILL");
        throw error;
      });
      return waiting.handles;
    } catch (error) {
      closeAll(waiting.handles);
      signal.throwIfAborted();
      throw new SandboxError("a socket inside a sandbox cannot be made", { cause: error });
    } finally {
      this.#waiting.delete(id);
    }
  }

  #start(): ChildProcess {
    const { pythonBin, uid, nativePath = ownNativePath() } = this.#options;
    // By its text: the user of sandboxes may not be able to read the worker's files.
    const program = textOf("inside.py") + textOf("door.py");
    // Interpreter and native part may be private to the worker's user: the program changes its
    // user itself.
    const user = uid === undefined ? [] : [String(uid)];
    const child = spawn(pythonBin, ["-I", "-S", "-c", program, nativePath, ...user], {
      cwd: "/",
      env: {},
      detached: true,
      stdio: ["ignore", "ignore", "pipe", "ipc"],
    });
    this.#complaint = "";
    child.stderr?.on("data", (chunk: Buffer) => {
      this.#complaint = (this.#complaint + chunk.toString()).slice(-maxComplaintBytes);
    });
    child.on("message", (message: Message, handle) => this.#receive(message, handle as Handle));
    const lost = (error?: Error): void => {
      child.kill("SIGKILL");
      if (this.#child === child) this.#child = undefined;
      const cause = error ?? new Error(this.#complaint);
      const failure = new Error("the door to networks of sandboxes has ended", { cause });
      for (const { finished } of this.#waiting.values()) finished.reject(failure);
    };
    child.on("error", lost);
    child.once("exit", () => lost());
    return child;
  }

  #receive({ id, index, error }: Message, handle: Handle): void {
    const waiting = this.#waiting.get(id);
    // Its sandbox no longer waits.
    if (waiting === undefined) return index === undefined ? undefined : closeAll([handle]);
    if (index !== undefined) {
      // Of a connection that cannot be accepted, for want of descriptors.
      handle.on("error", () => undefined);
      // As options of `createServer`, which this server was not made by.
      if (handle instanceof Server)
        Object.assign(handle, { allowHalfOpen: true, pauseOnConnect: true, noDelay: true });
      waiting.handles[index] = handle;
      if (--waiting.missing === 0) waiting.finished.resolve();
    } else if (error === undefined) waiting.finished.resolve();
    else waiting.finished.reject(new Error(error));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isDisposed = true;
    const child = this.#child;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, "exit");
    child.kill("SIGKILL");
    await ended;
  }
}

function textOf(name: string): string {
  return readFileSync(new URL(name, import.meta.url), "utf8");
}

function ownNativePath(): string {
  const machine = machines[process.arch] ?? process.arch;
  return fileURLToPath(new URL(`native/${machine}.so`, import.meta.url));
}

function opened(handles: readonly Handle[], { tcp }: SocketPlaces): OpenedSockets {
  const servers = handles.slice(0, tcp.length) as Server[];
  const datagrams = handles.slice(tcp.length) as DatagramSocket[];
  return { tcp: servers, udp: datagrams, [Symbol.dispose]: () => closeAll(handles) };
}

function closeAll(handles: readonly Handle[]): void {
  for (const handle of handles) {
    if (handle instanceof Socket) handle.destroy();
    else handle?.close();
  }
}
