/**
 * A registry of Python packages for tests: PEP 503, over a directory of archives.
 */
import { once } from "node:events";
import { readFileSync, readdirSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { hashOf } from "./archives.ts";

/** A running registry. */
export interface PythonRegistry extends AsyncDisposable {
  /** Of its index. */
  readonly url: string;
  /** Of an archive. */
  urlOf(file: string): string;
  /** Names of the archives that were downloaded until now. */
  readonly downloads: readonly string[];
}

/** Starts a registry of the archives that are in the directory; the caller owns it. */
export async function startPythonRegistry(directory: string): Promise<PythonRegistry> {
  const downloads: string[] = [];
  const server = createServer((request, response) => {
    const [, kind, name = ""] = (request.url ?? "").split("/");
    if (kind === "files") {
      downloads.push(name);
      response.setHeader("cache-control", "max-age=365000000, immutable, public");
      return void response.end(readFileSync(join(directory, name)));
    }
    const files = readdirSync(directory).filter((file) => file.startsWith(`${name}-`));
    if (files.length === 0) return void response.writeHead(404).end();
    const links = files.map((file) => {
      const hash = hashOf(join(directory, file)).replace(":", "=");
      return `<a href="${base}/files/${file}#${hash}">${file}</a>`;
    });
    response.setHeader("content-type", "text/html");
    response.end(`<!DOCTYPE html><html><body>${links.join("\n")}</body></html>`);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    url: `${base}/simple`,
    urlOf: (file) => `${base}/files/${file}`,
    downloads,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
