/**
 * Connections to a far side.
 */
import type { IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import { WebSocket } from "ws";
import { Semaphore } from "../../support/semaphore.ts";
import { RuntimeError } from "../api/errors.ts";
import { missingFor } from "./address.ts";
import type { RemoteAddress } from "./options.ts";
import { Connection } from "./connection.ts";
import { closeMs, handshakeMs, maxAnswerBytes, maxClientHandshakes } from "./limits.ts";
import { type FarAnswer, readFarMessage, subprotocol } from "./messages.ts";

/** Makes connections. Errors name the host, and never the token. */
export class Connector {
  /** The host and port, for errors. */
  readonly name: string;
  readonly #url: URL;
  readonly #address: RemoteAddress;
  // Each execution waits for its own.
  readonly #handshakes = new Semaphore({ capacity: maxClientHandshakes, maxWaiting: Infinity });

  /** Throws RuntimeError `RUNTIME_UNAVAILABLE` for an address that is refused. */
  constructor(address: RemoteAddress) {
    this.#address = address;
    this.#url = urlOf(address);
    this.name = this.#url.host;
  }

  /** Rejects with RuntimeError, or with the signal's reason on abort. The caller owns it. */
  async connect(signal: AbortSignal): Promise<Connection<FarAnswer>> {
    using _permit = await this.#handshakes.acquire(signal);
    signal.throwIfAborted();
    const { token, ca, pingIntervalMs } = this.#address;
    const { promise, resolve, reject } = Promise.withResolvers<Connection<FarAnswer>>();
    const options = {
      ...{ headers: token === undefined ? {} : { authorization: `Bearer ${token}` } },
      ...{ maxPayload: maxAnswerBytes, perMessageDeflate: false, handshakeTimeout: handshakeMs },
      ...{ followRedirects: false, allowSynchronousEvents: false, closeTimeout: closeMs },
      ...(ca !== undefined && { ca }),
    };
    const webSocket = new WebSocket(this.#url, subprotocol, options);
    let socket: Socket;
    webSocket.on("upgrade", (response) => (socket = response.socket));
    webSocket.on("open", () =>
      resolve(new Connection(webSocket, socket, { read: readFarMessage, pingIntervalMs })),
    );
    webSocket.on("unexpected-response", (_request, response: IncomingMessage) => {
      reject(this.#refused(response.statusCode ?? 0));
      webSocket.terminate();
    });
    webSocket.on("error", (error) => reject(this.#unreachable(error)));
    const onAbort = (): void => {
      reject(signal.reason as Error);
      webSocket.terminate();
    };
    signal.addEventListener("abort", onAbort, { once: true });
    try {
      return await promise;
    } finally {
      signal.removeEventListener("abort", onAbort);
    }
  }

  #refused(status: number): RuntimeError {
    const reasons: Partial<Record<number, string>> = {
      400: "it speaks another version",
      401: "it does not accept the token",
      403: "it serves no browsers",
      503: "it is busy",
    };
    const reason = reasons[status] ?? `it is no runtime, and answers ${status}`;
    return unavailable(`${this.name} refuses: ${reason}`, { retryable: status >= 500 });
  }

  #unreachable(cause: Error & { readonly code?: string }): RuntimeError {
    const { code = cause.message } = cause;
    const isTrust = /CERT|SIGNATURE|ISSUER|ERR_TLS|ERR_SSL/.test(code);
    return unavailable(`${this.name} cannot be reached: ${code}`, { retryable: !isTrust, cause });
  }
}

function urlOf({ url, token }: RemoteAddress): URL {
  if (!URL.canParse(String(url))) throw refused("the URL of the far side is none");
  const parsed = new URL(url);
  const { protocol, username, password, hash, hostname } = parsed;
  if (protocol !== "ws:" && protocol !== "wss:")
    throw refused(`the URL of the far side begins with ws: or wss:, not ${protocol}`);
  if (username !== "" || password !== "" || hash !== "")
    throw refused("the URL of the far side has no user, password or fragment");
  const has = { hasToken: token !== undefined, hasTls: protocol === "wss:" };
  const missing = missingFor(hostname, has);
  if (missing === undefined) return parsed;
  throw refused(`${hostname} is another machine: it needs ${missing}`);
}

function refused(detail: string): RuntimeError {
  return unavailable(detail, { retryable: false });
}

/** The error of a far side that cannot be used. */
export function unavailable(
  detail: string,
  options: { readonly retryable: boolean; readonly cause?: unknown },
): RuntimeError {
  return new RuntimeError("RUNTIME_UNAVAILABLE", { ...options, detail, op: "open" });
}
