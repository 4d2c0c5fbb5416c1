/**
 * A console's server with recorded data, by the contract of worker/console/api.ts: the page before
 * any worker. Its calls take a moment, and tell what a tool would.
 */
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { extname, join } from "node:path";
import { contentPolicy } from "../../../worker/console/http/page.ts";
import type { ConsolePlace } from "./browser.ts";
import { fail } from "./responses.ts";
import { StandInCalls } from "./stand-in-calls.ts";

export interface StandIn extends ConsolePlace, AsyncDisposable {
  /** Ends every event stream, as a lost network does. */
  readonly cutStreams: () => void;
  /** Has another token from now on, as a new worker does. */
  readonly renewToken: () => void;
}

const types: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
};

/** Serves the page in a directory that `buildConsole` filled. */
export async function startStandIn(directory: string): Promise<StandIn> {
  let token = randomUUID();
  const streams = new Set<ServerResponse>();
  const calls = new StandInCalls((name, data) => {
    for (const stream of streams) writeEvent(stream, name, data);
  });

  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const path = (request.url ?? "/").split("?", 1)[0] ?? "/";
    const route = `${request.method} ${path}`;
    response.setHeader("content-security-policy", contentPolicy);
    if (!path.startsWith("/api/")) return sendFile(response, directory, path);
    if (request.headers.authorization !== `Bearer ${token}`) {
      return fail(response, 401, "This is not the token.");
    }
    if (route === "GET /api/events") {
      response.writeHead(200, { "content-type": "text/event-stream" });
      streams.add(response);
      response.on("close", () => streams.delete(response));
      for (const [name, data] of calls.beginning()) writeEvent(response, name, data);
      return;
    }
    await calls.answer(route, request, response);
  };
  const server = createServer((request, response) => void answer(request, response));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const cutStreams = (): void => {
    for (const stream of streams) stream.destroy();
  };
  return {
    url: `http://127.0.0.1:${port}/`,
    get token() {
      return token;
    },
    cutStreams,
    renewToken: () => {
      token = randomUUID();
    },
    async [Symbol.asyncDispose]() {
      calls.stop();
      cutStreams();
      server.close();
      server.closeAllConnections();
      await once(server, "close");
    },
  };
}

function writeEvent(response: ServerResponse, name: string, data: unknown): void {
  response.write(`event: ${name}\ndata: ${JSON.stringify(data)}\n\n`);
}

async function sendFile(response: ServerResponse, directory: string, path: string): Promise<void> {
  const name = path === "/" ? "index.html" : path.slice(1);
  const bytes = /^[\w.-]+$/.test(name)
    ? await readFile(join(directory, name)).catch(() => null)
    : null;
  if (bytes === null) return fail(response, 404, "There is no such file.");
  response.writeHead(200, { "content-type": types[extname(name)] ?? "text/plain" });
  response.end(bytes);
}
