/**
 * How the bytes of clients come in: over TCP, or in the messages of WebSockets; either with TLS or
 * without.
 */
import { type RequestListener, createServer as createHttpServer } from "node:http";
import { createServer as createHttpsServer } from "node:https";
import { type Server, type Socket, createServer as createTcpServer } from "node:net";
import type { Duplex } from "node:stream";
import { type TlsOptions, TLSSocket, createServer as createTlsServer } from "node:tls";
import { WebSocketServer, createWebSocketStream } from "ws";
import { maxFrameBytes } from "./wire/frame.ts";

/** Certificate and key of the broker, as PEM. */
export interface SmfBrokerTls {
  readonly cert: string | Buffer;
  readonly key: string | Buffer;
  /**
   * Who may certify clients; without it none is asked for a certificate, with it each must show
   * one.
   */
  readonly clientCa?: string | Buffer;
}

/**
 * Takes over a connection: a stream of frames each way, and the common name of the client's
 * certificate, which TLS has verified.
 */
export type Serve = (stream: Duplex, certificateName: string | undefined) => void;

/** A kind of server, and what its URLs begin with. It does not listen yet. */
export interface Transport {
  readonly scheme: string;
  readonly secureScheme: string;
  createServer(tls: SmfBrokerTls | undefined, serve: Serve): Server;
}

/** Frames back to back. */
export const tcp: Transport = {
  scheme: "tcp",
  secureScheme: "tcps",
  createServer(tls, serve) {
    const take = (socket: Socket): void => serve(socket, certificateName(socket));
    if (tls === undefined) return createTcpServer({ noDelay: true }, take);
    const server = createTlsServer({ noDelay: true, ...tlsOptions(tls) }, take);
    // A client that does not trust us, or that we do not trust, has left already.
    server.on("tlsClientError", () => {});
    return server;
  },
};

/** What a client asks for that speaks SMF in a WebSocket. */
const subprotocol = "smf.solacesystems.com";

/** The same bytes in binary messages, which need not begin and end where frames do. */
export const web: Transport = {
  scheme: "ws",
  secureScheme: "wss",
  createServer(tls, serve) {
    const sockets = new WebSocketServer({
      noServer: true,
      clientTracking: false,
      maxPayload: maxFrameBytes,
      handleProtocols: (offered) => offered.has(subprotocol) && subprotocol,
    });
    const refuse: RequestListener = (_request, response) => void response.writeHead(426).end();
    const server = tls ? createHttpsServer(tlsOptions(tls), refuse) : createHttpServer(refuse);
    server.on("upgrade", (request, socket, head) => {
      sockets.handleUpgrade(request, socket, head, (webSocket) => {
        // Ends with its client, as a socket does.
        const stream = createWebSocketStream(webSocket, { allowHalfOpen: false });
        serve(stream, certificateName(request.socket));
      });
    });
    return server;
  },
};

function tlsOptions({ cert, key, clientCa }: SmfBrokerTls): TlsOptions {
  if (clientCa === undefined) return { cert, key };
  return { cert, key, ca: clientCa, requestCert: true, rejectUnauthorized: true };
}

/** The common name of the client's certificate, which TLS has verified. */
function certificateName(socket: Socket): string | undefined {
  if (!(socket instanceof TLSSocket) || !socket.authorized) return undefined;
  const name = socket.getPeerCertificate().subject?.CN;
  return Array.isArray(name) ? name[0] : name;
}
