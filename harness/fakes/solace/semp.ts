/**
 * The little of the management interface of a Solace broker (SEMP version 2) that looks after queues: list them, see how one
 * is used, remove one. There is one message VPN, whatever its name.
 */
import { once } from "node:events";
import { type IncomingMessage, type ServerResponse, createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { SmfBroker } from "./broker.ts";
import type { QueueSummary } from "./queue.ts";

/** Entries of a list where the request does not say. */
const defaultPageSize = 10;

/** How it is started. */
export interface SempServerOptions {
  /** Address to listen on; loopback unless told. */
  readonly host?: string;
  /** Port to listen on; a free one unless told. */
  readonly port?: number;
  /** The only user that is let in, as `name:password`; anybody unless told. */
  readonly credentials?: string;
}

/** Serves until it is disposed. */
export interface SempServer extends AsyncDisposable {
  /** `http://HOST:PORT` */
  readonly url: string;
}

/** An answer: its HTTP status and what it says. */
interface Answer {
  readonly status: number;
  readonly body: object;
}

/** Starts the management of a broker. Rejects when it cannot listen. The caller disposes it. */
export async function startSemp(
  broker: SmfBroker,
  { host = "127.0.0.1", port = 0, credentials }: SempServerOptions = {},
): Promise<SempServer> {
  const expected = credentials && `Basic ${Buffer.from(credentials).toString("base64")}`;
  const server = createServer((request, response) => {
    const isKnown = expected === undefined || request.headers.authorization === expected;
    reply(
      response,
      isKnown ? answer(broker, request) : refusal(401, "UNAUTHORIZED", "no such user"),
    );
  });
  server.listen(port, host);
  await once(server, "listening");
  const address = server.address() as AddressInfo;
  return {
    url: `http://${host.includes(":") ? `[${host}]` : host}:${address.port}`,
    async [Symbol.asyncDispose]() {
      const closed = once(server, "close");
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

function answer(broker: SmfBroker, { method, url = "" }: IncomingMessage): Answer {
  const { pathname, searchParams } = new URL(url, "http://localhost");
  const path = /^\/SEMP\/v2\/(monitor|config)\/msgVpns\/[^/]+\/queues(?:\/([^/]+))?$/.exec(
    pathname,
  );
  if (path === null) return refusal(400, "INVALID_PATH", "no such path");
  const [, api, encoded] = path;
  if (encoded === undefined) return list(broker, searchParams);
  const name = decodeURIComponent(encoded);
  const queue = broker.queue(name);
  if (queue === undefined) return refusal(400, "NOT_FOUND", `Could not find match for ${name}`);
  if (method === "GET" && api === "monitor") {
    const collections = {
      msgs: { count: queue.depth },
      txFlows: { count: queue.consumers.length },
    };
    return success({ collections, data: attributesOf(queue) });
  }
  if (method === "DELETE" && api === "config") {
    broker.deleteQueue(name);
    return success({});
  }
  return refusal(405, "NOT_ALLOWED", `no ${method} here`);
}

function attributesOf(queue: QueueSummary): Record<string, unknown> {
  return {
    queueName: queue.name,
    spooledMsgCount: queue.spooled,
    bindRequestCount: queue.bindRequests,
    txUnackedMsgCount: queue.unsettled,
    msgSpoolUsage: queue.sizeBytes,
  };
}

/**
 * A page of the queues of a pattern that ends with `*`, with the attributes that are asked for; the cursor is the name of the
 * last one before it.
 */
function list(broker: SmfBroker, query: URLSearchParams): Answer {
  const pattern = /^queueName==([^*]*)\*$/.exec(query.get("where") ?? "queueName==*");
  if (pattern === null) return refusal(400, "INVALID_PARAMETER", "where is not understood");
  const size = Number(query.get("count") ?? defaultPageSize);
  const queues = broker.queues
    .filter(({ name }) => name.startsWith(pattern[1] ?? "") && name > (query.get("cursor") ?? ""))
    .toSorted((a, b) => (a.name < b.name ? -1 : 1));
  const page = queues.slice(0, size);
  const paging = queues.length > size && { paging: { cursorQuery: page.at(-1)?.name } };
  const asked = query.get("select")?.split(",");
  const data = page.map((queue) =>
    Object.fromEntries(
      Object.entries(attributesOf(queue)).filter(([name]) => asked?.includes(name) ?? true),
    ),
  );
  return success({ data, meta: paging || {} });
}

function success({
  meta = {},
  ...body
}: {
  readonly meta?: object;
  readonly [key: string]: unknown;
}): Answer {
  return { status: 200, body: { ...body, meta: { ...meta, responseCode: 200 } } };
}

function refusal(status: number, error: string, description: string): Answer {
  return {
    status,
    body: { meta: { error: { status: error, description }, responseCode: status } },
  };
}

function reply(response: ServerResponse, { status, body }: Answer): void {
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
}
