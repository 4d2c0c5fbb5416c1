/**
 * `/livez` and `/readyz` for an orchestrator.
 */
import { type Server, createServer } from "node:http";

/** Milliseconds a client may take to send its request. */
const requestTimeoutMs = 5_000;
/** Connections at once; a prober needs one. */
const maxConnections = 64;

/** Why the worker is not ready, by what is missing; empty when it is. */
export type Readiness = () => readonly string[];

/** The health server. Disposing it closes the port. */
export interface HealthServer extends AsyncDisposable {
  readonly port: number;
}

/**
 * Serves on every interface. `/livez` answers 200 as long as the process can answer; `/readyz` 200 or 503 with
 * `{"ok": false, "missing": [...]}`; anything else 404. Rejects when the port cannot be had. The caller owns the server.
 */
export async function startHealthServer(port: number, readiness: Readiness): Promise<HealthServer> {
  const server = createServer({ requestTimeout: requestTimeoutMs }, (request, response) => {
    const answer = route(request.url ?? "", readiness);
    response.writeHead(answer.status, { "content-type": "application/json" });
    response.end(JSON.stringify(answer.body));
  });
  server.maxConnections = maxConnections;
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, resolve);
  });
  return { port: portOf(server), [Symbol.asyncDispose]: () => close(server) };
}

function route(url: string, readiness: Readiness): { status: number; body: object } {
  switch (url.split("?")[0]) {
    case "/livez":
      return { status: 200, body: { ok: true } };
    case "/readyz": {
      const missing = readiness();
      return missing.length === 0
        ? { status: 200, body: { ok: true } }
        : { status: 503, body: { ok: false, missing } };
    }
    default:
      return { status: 404, body: { ok: false } };
  }
}

function portOf(server: Server): number {
  const address = server.address();
  return typeof address === "object" && address !== null ? address.port : 0;
}

async function close(server: Server): Promise<void> {
  const closed = new Promise<void>((resolve) => server.close(() => resolve()));
  server.closeAllConnections();
  await closed;
}
