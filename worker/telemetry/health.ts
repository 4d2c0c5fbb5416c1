/**
 * Health probes for an orchestrator, under the names that deployments of this family of workers ask
 * for, and metrics.
 */
import type { Server, ServerResponse } from "node:http";

/** An `import` would load `fetch` and `WebSocket`, too: a tenth of all that a worker loads. */
const { createServer } = process.getBuiltinModule("node:http");

/** Milliseconds a client may take to send its request. */
const requestTimeoutMs = 5_000;
/** Connections at once; a prober needs one. */
const maxConnections = 64;

/** What the probes look at. */
export interface Health {
  /** What the worker lacks to be ready; empty when it is. */
  missing(): readonly string[];
  /** What an operator should mend although the worker is ready. */
  warnings?(): readonly string[];
  /** How many environments of packages are ready, being installed, and failed. */
  packages?(): object | undefined;
  /** Whether it was ready once. */
  hasStarted(): boolean;
  /** The page `/metrics`; 500 where it rejects. Undefined: there is none. */
  readonly metrics?: MakePage | undefined;
}

/** A page that is not JSON. */
export interface Page {
  readonly contentType: string;
  readonly text: string;
}

/** Makes a page in a format that the reader accepts, by its header of that name. */
export type MakePage = (accept?: string) => Promise<Page>;

/** Where the server listens. */
export interface HealthAddress {
  readonly port: number;
  /** Name or address of an interface; every one when undefined. */
  readonly host: string | undefined;
}

/** The health server. Disposing it closes the port. */
export interface HealthServer extends AsyncDisposable {
  readonly port: number;
}

/**
 * Answers 200, or 503 with `{"ok": false, "missing": [...]}`; `/readyz` tells `warnings` and
 * `packages`, too. 404 to anything but a probe and `/metrics`. Rejects when address and port cannot
 * be had. The caller owns the server.
 */
export async function startHealthServer(
  { port, host }: HealthAddress,
  health: Health,
): Promise<HealthServer> {
  const server = createServer({ requestTimeout: requestTimeoutMs }, (request, response) => {
    const path = request.url?.split("?")[0] ?? "";
    if (path === "/metrics" && health.metrics !== undefined)
      health.metrics(request.headers.accept).then(
        (page) => send(response, 200, page),
        () => sendJson(response, { status: 500, body: { ok: false } }),
      );
    else sendJson(response, route(path, health));
  });
  server.maxConnections = maxConnections;
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen({ port, host }, resolve);
  });
  return { port: portOf(server), [Symbol.asyncDispose]: () => close(server) };
}

function send(response: ServerResponse, status: number, { contentType, text }: Page): void {
  response.writeHead(status, { "content-type": contentType });
  response.end(text);
}

function sendJson(response: ServerResponse, { status, body }: HealthAnswer): void {
  send(response, status, { contentType: "application/json", text: JSON.stringify(body) });
}

interface HealthAnswer {
  readonly status: number;
  readonly body: object;
}

function route(path: string, health: Health): HealthAnswer {
  switch (path) {
    case "/livez":
    case "/healthz":
    case "/health":
      return ok;
    case "/readyz":
    case "/ready":
      return withDetails(unlessMissing(health.missing()), health);
    case "/startup":
      return health.hasStarted() ? ok : unlessMissing(health.missing());
    default:
      return { status: 404, body: { ok: false } };
  }
}

const ok: HealthAnswer = { status: 200, body: { ok: true } };

function unlessMissing(missing: readonly string[]): HealthAnswer {
  return missing.length === 0 ? ok : { status: 503, body: { ok: false, missing } };
}

function withDetails({ status, body }: HealthAnswer, health: Health): HealthAnswer {
  const warnings = health.warnings?.() ?? [];
  const packages = health.packages?.();
  return {
    status,
    body: {
      ...body,
      ...(warnings.length > 0 && { warnings }),
      ...(packages !== undefined && { packages }),
    },
  };
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
