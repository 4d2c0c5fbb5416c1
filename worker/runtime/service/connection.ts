/**
 * A WebSocket between a caller and the far side, for one execution.
 */
import type { Socket } from "node:net";
import type { RawData, WebSocket } from "ws";
import { type Clock, systemClock } from "../../support/clock.ts";
import { abortable } from "../../support/timeout.ts";
import { GatewayChannel } from "./channel.ts";
import { defaultPingIntervalMs, maxUnansweredPings, maxUnreadMessages } from "./limits.ts";
import { ProtocolError, type TakenMessage } from "./messages.ts";

/** Codes of RFC 6455, 7.4.1. */
const policyViolation = 1008;
const tooBig = 1009;
/** Bytes of a reason, by the RFC. */
const maxReasonBytes = 123;

/** The connection is over. The message is publishable. */
export class ConnectionError extends Error {
  /** It broke. Else a peer closed it for what the other did. */
  readonly isLost: boolean;

  constructor(message: string, isLost: boolean) {
    super(message);
    this.name = "ConnectionError";
    this.isLost = isLost;
  }
}

export interface ConnectionOptions<Incoming> {
  /** Reads a text message. Throws ProtocolError. */
  readonly read: (bytes: Buffer) => Incoming | TakenMessage;
  readonly pingIntervalMs?: number | undefined;
  readonly clock?: Clock;
}

/** Owns an open WebSocket; `socket` is the one below it. */
export class Connection<Incoming extends { readonly type: string }> implements AsyncDisposable {
  /** Bytes of the gateway's frames, both ways. */
  readonly channel: GatewayChannel;
  readonly #webSocket: WebSocket;
  readonly #socket: Pick<Socket, "bytesRead">;
  readonly #read: ConnectionOptions<Incoming>["read"];
  readonly #unread: Incoming[] = [];
  readonly #ended = new AbortController();
  readonly #closed = Promise.withResolvers<void>();
  #reader: ((message: Incoming) => void) | undefined;

  constructor(
    webSocket: WebSocket,
    socket: Pick<Socket, "bytesRead">,
    options: ConnectionOptions<Incoming>,
  ) {
    this.#webSocket = webSocket;
    this.#socket = socket;
    this.#read = options.read;
    this.channel = new GatewayChannel({
      chunk: (bytes) => webSocket.send(bytes, { binary: true }),
      taken: (bytes) => this.send({ type: "taken", bytes }),
    });
    webSocket.on("message", (data, isBinary) => this.#received(data, isBinary));
    webSocket.on("error", (error: Error & { readonly code?: string }) => {
      // Of the library: the peer breaks RFC 6455, or sends too much.
      this.#end(error.message, error.code?.startsWith("WS_ERR_") !== true);
    });
    webSocket.on("close", (code, reason) => {
      const isRefused = code === policyViolation || code === tooBig;
      const said =
        reason.toString() || (code === tooBig ? "a message is too large" : `code ${code}`);
      this.#end(
        isRefused ? `the peer refuses: ${said}` : `the connection was lost: ${said}`,
        !isRefused,
      );
      this.#closed.resolve();
    });
    void this.#watch(options.clock ?? systemClock, options.pingIntervalMs);
  }

  /** Aborts with ConnectionError when nothing can be sent any more. */
  get ended(): AbortSignal {
    return this.#ended.signal;
  }

  /**
   * The next message; one caller at a time. Rejects with ConnectionError, or with the signal's
   * reason on abort.
   */
  async next(signal: AbortSignal = this.ended): Promise<Incoming> {
    const message = this.#unread.shift();
    if (message !== undefined) return message;
    const { promise, resolve } = Promise.withResolvers<Incoming>();
    this.#reader = resolve;
    return abortable(promise, AbortSignal.any([this.ended, signal]));
  }

  /** Sends a message, or nothing if the connection is over. Throws for what is no JSON. */
  send(message: object): void {
    this.sendText(JSON.stringify(message));
  }

  sendText(json: string): void {
    if (!this.ended.aborted) this.#webSocket.send(json);
  }

  /** Tells the peer, and closes. */
  refuse(message: string): void {
    if (this.ended.aborted) return;
    const reason = Buffer.from(message)
      .subarray(0, maxReasonBytes)
      .toString()
      .replace(/\ufffd$/, "");
    this.#webSocket.close(policyViolation, reason);
    this.#end(message, false);
  }

  /** Cuts the connection. A refused peer gets the reason before, if it reads. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#end("this side closed it", true);
    if (this.#webSocket.readyState === this.#webSocket.OPEN) this.#webSocket.terminate();
    await this.#closed.promise;
  }

  #received(data: RawData, isBinary: boolean): void {
    if (this.ended.aborted) return;
    // `binaryType` is that of Node.
    const bytes = data as Buffer;
    try {
      if (!isBinary) this.#accept(this.#read(bytes));
      else if (!this.channel.receive(bytes)) throw overWindow();
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      this.refuse(error.message);
    }
  }

  #accept(message: Incoming | TakenMessage): void {
    if (isTaken(message)) {
      if (!this.channel.grant(message.bytes)) throw overWindow();
      return;
    }
    const reader = this.#reader;
    this.#reader = undefined;
    if (reader !== undefined) return reader(message);
    if (this.#unread.length >= maxUnreadMessages)
      throw new ProtocolError("more messages were sent than are answered");
    this.#unread.push(message);
  }

  /** Pings. A peer of which no byte comes for some pings is lost. */
  async #watch(clock: Clock, intervalMs = defaultPingIntervalMs): Promise<void> {
    let readBytes = -1;
    let unanswered = 0;
    while (await slept(clock, intervalMs, this.ended)) {
      // Pings and not milliseconds: this process may have been stopped itself.
      unanswered = this.#socket.bytesRead === readBytes ? unanswered + 1 : 0;
      readBytes = this.#socket.bytesRead;
      if (unanswered >= maxUnansweredPings) {
        this.#end(`nothing was heard of the peer for ${unanswered} pings`, true);
        return this.#webSocket.terminate();
      }
      this.#webSocket.ping();
    }
  }

  #end(message: string, isLost: boolean): void {
    if (this.ended.aborted) return;
    this.#ended.abort(new ConnectionError(message, isLost));
    this.channel.destroy();
  }
}

function isTaken(message: { readonly type: string }): message is TakenMessage {
  return message.type === "taken";
}

function overWindow(): ProtocolError {
  return new ProtocolError("the gateway's channel was not kept within its window");
}

/** Whether the time passed before the signal aborted. */
async function slept(clock: Clock, ms: number, signal: AbortSignal): Promise<boolean> {
  return clock.sleep(ms, signal).then(
    () => true,
    () => false,
  );
}
