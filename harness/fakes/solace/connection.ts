/**
 * One connection to the broker, from its first byte to its last.
 */
import type { Duplex } from "node:stream";
import {
  type Login,
  clientControl,
  decodeClientControl,
  encodeClientControl,
  encodeWelcome,
  readLogin,
} from "./wire/client-control.ts";
import { Deframer } from "./wire/deframer.ts";
import { refusals } from "./faults.ts";
import { type Field, MalformedError } from "./wire/fields.ts";
import { type Frame, decodeFrame, encodeFrame, protocol } from "./wire/frame.ts";
import { type Response, responseParam } from "./wire/params.ts";
import type { Router } from "./router.ts";
import { Session } from "./session.ts";

/**
 * Bytes on their way to a client from which on it gets no further messages, and is not listened to.
 */
export const maxUnsentBytes = 8 * 1024 * 1024;

/** Bytes of a client's name. */
export const maxClientNameBytes = 160;

/** Clients that are logged in at once. */
export const maxClients = 1_000;

const routerName = "smf-test-broker";
const ok: Response = { code: 200, text: "OK" };

/** What a connection is made of. */
export interface ConnectionOptions {
  /** The bytes both ways, whatever carries them. */
  readonly stream: Duplex;
  /** The common name of the client's certificate, if it has shown one. */
  readonly certificateName: string | undefined;
  readonly router: Router;
  /** Of no other connection. */
  readonly id: number;
}

/** Serves a client until either side ends it. Whoever sends what cannot be read is cut off. */
export class Connection {
  readonly #stream: Duplex;
  readonly #certificateName: string | undefined;
  readonly #router: Router;
  /** Tells this client's inbox from those of its namesakes. */
  readonly #id: number;
  readonly #deframer = new Deframer();
  #session: Session | undefined;

  constructor({ stream, certificateName, router, id }: ConnectionOptions) {
    this.#stream = stream;
    this.#certificateName = certificateName;
    this.#router = router;
    this.#id = id;
    // Whoever breaks a connection has left; there is nobody to tell.
    stream.on("error", () => {});
    stream.on("close", () => this.close());
    stream.on("data", (chunk: Buffer) => this.#take(chunk));
    stream.on("drain", () => {
      stream.resume();
      this.#session?.resume();
    });
  }

  /**
   * Cuts the connection without a word; what its client had in hand comes back a moment later.
   * Idempotent.
   */
  cut(): void {
    this.#stream.destroy();
  }

  /** Cuts the connection, and has what its client had in hand back at once. Idempotent. */
  close(): void {
    this.cut();
    const session = this.#session;
    if (session === undefined) return;
    this.#session = undefined;
    this.#router.clients.delete(session.name);
    session.close();
    this.#router.events.emit("disconnected", { clientName: session.name });
  }

  #take(chunk: Buffer): void {
    try {
      for (const bytes of this.#deframer.push(chunk)) {
        if (this.#stream.destroyed) return;
        this.#handle(decodeFrame(bytes));
      }
    } catch (error) {
      if (!(error instanceof MalformedError)) throw error;
      this.close();
    }
  }

  #handle(frame: Frame): void {
    switch (frame.protocol) {
      case protocol.keepAlive:
      case protocol.keepAliveV2:
        if (!this.#router.faults.mutesKeepAlives) this.#send(frame.bytes);
        return;
      case protocol.clientControl:
        return this.#control(frame);
      default:
        if (this.#session === undefined) throw new MalformedError("a request before login");
        this.#session.handle(frame);
    }
  }

  #control(frame: Frame): void {
    const { type, fields } = decodeClientControl(frame.payload);
    if (this.#session === undefined && type === clientControl.login) {
      const login = readLogin(frame, fields, this.#certificateName);
      return this.#logIn(login, frame.correlationTag);
    }
    this.#answer(frame.correlationTag, ok, encodeClientControl(clientControl.update, []));
  }

  #logIn(login: Login, tag: number | undefined): void {
    const { clientName, username, vpn } = login;
    const fault = this.#router.faults.login?.(login) ?? this.#refusal(login);
    if (fault === "silence") return;
    if (fault) {
      this.#answer(tag, fault, encodeClientControl(clientControl.login, []));
      this.#stream.end(() => this.cut());
      return;
    }
    const inbox = `#P2P/v:${routerName}/${this.#id}/${clientName}`;
    this.#session = new Session(this.#router, {
      clientName,
      username,
      isBusy: () => this.#isBusy,
      send: (bytes) => this.#send(bytes),
    });
    this.#router.clients.set(clientName, this.#session);
    this.#answer(tag, ok, encodeWelcome({ routerName, clientName, vpn, inbox }));
    this.#router.events.emit("connected", { clientName, username });
  }

  #refusal({ clientName }: Login): Response | undefined {
    if (clientName === "" || Buffer.byteLength(clientName) > maxClientNameBytes) {
      return refusals.invalidName;
    }
    const { clients } = this.#router;
    if (clients.has(clientName)) return refusals.clientNameInUse;
    return clients.size >= maxClients ? refusals.tooManyClients : undefined;
  }

  #answer(correlationTag: number | undefined, response: Response, payload: Buffer): void {
    const fields: readonly Field[] = [responseParam(response)];
    this.#send(encodeFrame({ protocol: protocol.clientControl, correlationTag, fields, payload }));
  }

  /** Whether no more can be sent for now, or ever. */
  get #isBusy(): boolean {
    return this.#stream.destroyed || this.#stream.writableLength > maxUnsentBytes;
  }

  #send(bytes: Buffer): void {
    if (this.#stream.destroyed) return;
    this.#stream.write(bytes);
    if (this.#isBusy) this.#stream.pause();
  }
}
