/**
 * One TCP connection to a DevBroker: commands go out, answers come back in the same order.
 */
import { once } from "node:events";
import { type Socket, connect } from "node:net";
import { abortable } from "../../support/within.ts";
import { BrokerError } from "../broker.ts";
import { type Answer, LineSplitter, decodeAnswer, maxAnswerBytes, maxLineBytes } from "./wire.ts";

/** Milliseconds for the TCP connection (as the original client). */
const connectTimeoutMs = 5_000;

/** Milliseconds for the answer to a command that does not itself wait (as the original client). */
export const commandTimeoutMs = 30_000;

/**
 * Commands on the way at once; further ones are refused, because nothing here slows their sender
 * down.
 */
const maxPendingCommands = 2_000;

/** Milliseconds of silence after which TCP asks whether the peer is still there. */
const keepAliveDelayMs = 30_000;

/** A command whose answer is awaited. */
interface Pending {
  resolve(answer: Answer): void;
  reject(error: BrokerError): void;
  readonly timer: NodeJS.Timeout;
}

/** An open connection. Its owner disposes it; a connection that is lost disposes itself. */
export class DevConnection implements AsyncDisposable {
  /** Why the connection ended, once it has; never rejects. */
  readonly closed: Promise<BrokerError>;
  readonly #socket: Socket;
  readonly #address: string;
  readonly #pending: Pending[] = [];
  readonly #closed = Promise.withResolvers<BrokerError>();
  readonly #released: Promise<void>;
  #end: BrokerError | undefined;

  private constructor(socket: Socket, address: string) {
    this.#socket = socket;
    this.#address = address;
    this.closed = this.#closed.promise;
    const splitter = new LineSplitter(maxAnswerBytes);
    socket.on("data", (chunk: Buffer) => {
      for (const line of splitter.push(chunk)) {
        this.#answered(
          line.kind === "line"
            ? decodeAnswer(line.bytes)
            : { status: "UNREADABLE", reason: `the line has ${line.sizeBytes} bytes` },
        );
      }
    });
    socket.on("error", (error) => this.#close(this.#lost(error)));
    this.#released = new Promise((resolve) => socket.on("close", () => resolve()));
    socket.on("close", () => this.#close(this.#lost()));
  }

  /**
   * Connects. Throws BrokerError, or the signal's reason when it aborts; leaves nothing open then.
   */
  static async open(
    address: { host: string; port: number },
    signal: AbortSignal,
  ): Promise<DevConnection> {
    signal.throwIfAborted();
    const { host, port } = address;
    const name = `${host}:${port}`;
    const socket = connect({
      host,
      port,
      noDelay: true,
      keepAlive: true,
      keepAliveInitialDelay: keepAliveDelayMs,
    });
    const connection = new DevConnection(socket, name);
    const timeout = AbortSignal.timeout(connectTimeoutMs);
    try {
      await once(socket, "connect", { signal: AbortSignal.any([signal, timeout]) });
      return connection;
    } catch (error) {
      await connection[Symbol.asyncDispose]();
      signal.throwIfAborted();
      const reason = timeout.aborted ? `no answer within ${connectTimeoutMs} ms` : codeOf(error);
      throw new BrokerError(`Cannot connect to the broker at ${name}: ${reason}`, {
        cause: error,
        transient: true,
      });
    }
  }

  /**
   * Sends a command line and resolves with its answer. The line is written before this returns, so
   * calls keep their order. Throws the BrokerError that ended the connection, one that is not
   * transient when the line is longer than the broker reads, or the signal's reason when it aborts
   * (the command may have been carried out then). A command without an answer after `timeoutMs`
   * ends the connection: the answers after it could not be told apart.
   */
  command(
    line: Buffer,
    signal: AbortSignal,
    timeoutMs: number = commandTimeoutMs,
  ): Promise<Answer> {
    if (this.#end) return Promise.reject(this.#end);
    if (signal.aborted) return Promise.reject(signal.reason as Error);
    const sizeBytes = line.length - 1;
    if (sizeBytes > maxLineBytes) {
      return refuse(
        `The message takes a line of ${sizeBytes} bytes; the broker reads lines of at most ${maxLineBytes} bytes`,
        false,
      );
    }
    if (this.#pending.length >= maxPendingCommands) {
      return refuse(`${maxPendingCommands} commands to the broker have no answer yet`, true);
    }
    const { promise, resolve, reject } = Promise.withResolvers<Answer>();
    const timer = setTimeout(() => this.#close(this.#silent(timeoutMs)), timeoutMs);
    this.#pending.push({ resolve, reject, timer });
    this.#socket.write(line);
    return abortable(promise, signal);
  }

  /** Closes the connection without ceremony; commands on the way fail. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#close(new BrokerError("The broker session has ended", { transient: true }));
    await this.#released;
  }

  #answered(answer: Answer): void {
    // A line without a command to answer is nobody's.
    const pending = this.#pending.shift();
    if (!pending) return;
    clearTimeout(pending.timer);
    pending.resolve(answer);
  }

  #close(reason: BrokerError): void {
    if (this.#end) return;
    this.#end = reason;
    this.#socket.destroy();
    this.#closed.resolve(reason);
    for (const pending of this.#pending.splice(0)) {
      clearTimeout(pending.timer);
      pending.reject(reason);
    }
  }

  #lost(cause?: Error): BrokerError {
    const reason = cause ? `: ${codeOf(cause)}` : "";
    return new BrokerError(`The connection to the broker at ${this.#address} was lost${reason}`, {
      cause,
      transient: true,
    });
  }

  #silent(timeoutMs: number): BrokerError {
    return new BrokerError(
      `The broker at ${this.#address} did not answer a command within ${timeoutMs} ms`,
      { transient: true },
    );
  }
}

function refuse(message: string, transient: boolean): Promise<never> {
  return Promise.reject(new BrokerError(message, { transient }));
}

function codeOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return "code" in error && typeof error.code === "string" ? error.code : error.message;
}
