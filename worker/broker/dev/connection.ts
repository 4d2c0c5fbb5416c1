/**
 * One TCP connection to a DevBroker: commands go out, answers come back in the same order.
 */
import { once } from "node:events";
import { type Socket, connect } from "node:net";
import { newId } from "../../support/ids.ts";
import { LineSplitter } from "../../support/text/byte-lines.ts";
import { abortable } from "../../support/timeout.ts";
import { logEvent } from "../../telemetry/log-event.ts";
import { BrokerError } from "../broker.ts";
import { type BrokerLog, codeOf, reasonOf } from "../log.ts";
import type { DevConfig } from "./config.ts";
import { refusal } from "./failures.ts";
import {
  type Answer,
  type DevMessage,
  decodeAnswer,
  encodeCommand,
  maxAnswerBytes,
  maxLineBytes,
} from "./wire.ts";

/** Limits of the original client, for a connection, a command, and a `RECEIVE` after its time. */
const connectTimeoutMs = 5_000;
const commandTimeoutMs = 30_000;
const receiveGraceMs = 5_000;

const maxPendingCommands = 2_000;

/** Milliseconds of silence after which TCP probes the peer. */
const keepAliveDelayMs = 30_000;

export interface ClientOptions extends DevConfig {
  /** Beginning of the client ids, for readers of the broker's log. */
  readonly workerId: string;
}

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
    const lose = (cause?: Error): void => {
      const reason = cause === undefined ? "" : `: ${codeOf(cause) ?? cause.message}`;
      const message = `The connection to the broker at ${address} was lost${reason}`;
      this.#close(new BrokerError(message, { cause, transient: true }));
    };
    socket.on("error", lose);
    this.#released = new Promise((resolve) => socket.on("close", () => resolve()));
    socket.on("close", () => lose());
  }

  static async open({ host, port }: DevConfig, signal: AbortSignal): Promise<DevConnection> {
    signal.throwIfAborted();
    const address = `${host}:${port}`;
    const keepAlive = { keepAlive: true, keepAliveInitialDelay: keepAliveDelayMs };
    const socket = connect({ host, port, noDelay: true, ...keepAlive });
    const connection = new DevConnection(socket, address);
    const timeout = AbortSignal.timeout(connectTimeoutMs);
    try {
      await once(socket, "connect", { signal: AbortSignal.any([signal, timeout]) });
      return connection;
    } catch (error) {
      await connection[Symbol.asyncDispose]();
      signal.throwIfAborted();
      const code = codeOf(error) ?? reasonOf(error);
      const reason = timeout.aborted ? `no answer within ${connectTimeoutMs} ms` : code;
      throw new BrokerError(`Cannot connect to the broker at ${address}: ${reason}`, {
        cause: error,
        transient: true,
      });
    }
  }

  /**
   * Writes a command line before it returns and resolves with the answer. Ends the connection after
   * `timeoutMs`: later answers could not be told apart.
   */
  async command(
    line: Buffer,
    signal: AbortSignal,
    timeoutMs: number = commandTimeoutMs,
  ): Promise<Answer> {
    if (this.#end) throw this.#end;
    signal.throwIfAborted();
    const sizeBytes = line.length - 1;
    if (sizeBytes > maxLineBytes) {
      const limit = `the broker reads lines of at most ${maxLineBytes} bytes`;
      const message = `The message takes a line of ${sizeBytes} bytes; ${limit}`;
      throw new BrokerError(message, { transient: false });
    }
    if (this.#pending.length >= maxPendingCommands) {
      const message = `${maxPendingCommands} commands to the broker have no answer yet`;
      throw new BrokerError(message, { transient: true });
    }
    const { promise, resolve, reject } = Promise.withResolvers<Answer>();
    // First: the answer comes in a later turn.
    this.#socket.write(line);
    const timer = setTimeout(() => this.#expire(timeoutMs), timeoutMs);
    this.#pending.push({ resolve, reject, timer });
    return abortable(promise, signal);
  }

  async execute(name: string, line: Buffer, signal: AbortSignal): Promise<void> {
    const answer = await this.command(line, signal);
    if (answer.status === "OK") return;
    const failure = refusal(name, answer);
    // A broker that has forgotten the client does not remember it.
    if (answer.status === "ERROR" && answer.code === "NOT_CONNECTED") this.#close(failure);
    throw failure;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#close(new BrokerError("The broker session has ended", { transient: true }));
    await this.#released;
  }

  #answered(answer: Answer): void {
    const pending = this.#pending.shift();
    if (!pending) return;
    clearTimeout(pending.timer);
    pending.resolve(answer);
  }

  #expire(timeoutMs: number): void {
    const message = `The broker at ${this.#address} did not answer a command within ${timeoutMs} ms`;
    this.#close(new BrokerError(message, { transient: true }));
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
}

/** Uses each client id once: the original drops the registration of an id that returns. */
export async function openClient(
  options: ClientOptions,
  subscriptions: readonly string[],
  signal: AbortSignal,
): Promise<DevConnection> {
  await using stack = new AsyncDisposableStack();
  const connection = stack.use(await DevConnection.open(options, signal));
  const clientId = `${options.workerId}-${newId()}`;
  const hello = encodeCommand({ cmd: "CONNECT", client_id: clientId, subscriptions });
  await connection.execute("CONNECT", hello, signal);
  stack.move();
  return connection;
}

export interface ReceiveOptions {
  readonly waitMs: number;
  readonly log: BrokerLog;
  readonly signal: AbortSignal;
}

/** The next message; undefined when none came in time. Skips and logs unreadable ones. */
export async function receive(
  connection: DevConnection,
  { waitMs, log, signal }: ReceiveOptions,
): Promise<DevMessage | undefined> {
  const line = encodeCommand({ cmd: "RECEIVE", timeout_ms: waitMs });
  for (;;) {
    const answer = await connection.command(line, signal, waitMs + receiveGraceMs);
    switch (answer.status) {
      case "OK":
        if (answer.message) return answer.message;
        break;
      case "TIMEOUT":
        return undefined;
      case "UNREADABLE":
        logEvent(log, "message.unreadable", { reason: answer.reason });
        break;
      case "ERROR":
        throw refusal("RECEIVE", answer);
    }
  }
}
