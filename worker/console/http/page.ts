/**
 * The files of the page, read once, and the headers of everything that the console answers.
 */
import { readFile } from "node:fs/promises";
import type { IncomingMessage, ServerResponse } from "node:http";
import { join } from "node:path";

/** Paths of the page, and what they are. */
const files = new Map([
  ["/", { name: "index.html", type: "text/html; charset=utf-8" }],
  ["/console.js", { name: "console.js", type: "text/javascript; charset=utf-8" }],
  ["/console.css", { name: "console.css", type: "text/css; charset=utf-8" }],
  ["/icon.svg", { name: "icon.svg", type: "image/svg+xml" }],
]);

/** Nothing from elsewhere, and nothing that text of a tool could become (CSP Level 3). */
export const contentPolicy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' blob: data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join("; ");

/** Headers of every answer. */
export const commonHeaders: Readonly<Record<string, string>> = {
  "Content-Security-Policy": contentPolicy,
  "X-Content-Type-Options": "nosniff",
  "Referrer-Policy": "no-referrer",
  "Cross-Origin-Opener-Policy": "same-origin",
  "Cross-Origin-Resource-Policy": "same-origin",
  "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
  "Cache-Control": "no-store",
};

/** The page. */
export interface Page {
  /** Answers, if the path is one of the page's. */
  serve(path: string, request: IncomingMessage, response: ServerResponse): boolean;
}

/** Reads the page from a directory. Rejects where a file is missing. */
export async function readPage(directory: string): Promise<Page> {
  const entries = Array.from(files, async ([path, { name, type }]) => {
    return [path, { type, bytes: await readFile(join(directory, name)) }] as const;
  });
  const contents = new Map(await Promise.all(entries));
  return {
    serve(path, { method }, response) {
      const content = contents.get(path);
      if (content === undefined || (method !== "GET" && method !== "HEAD")) return false;
      const { type, bytes } = content;
      response.writeHead(200, { "Content-Type": type, "Content-Length": bytes.byteLength });
      response.end(method === "HEAD" ? undefined : bytes);
      return true;
    },
  };
}
