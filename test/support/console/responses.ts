/** Bodies and answers of the stand-in server. */
import type { IncomingMessage, ServerResponse } from "node:http";

export async function bodyOf(request: IncomingMessage): Promise<string> {
  let body = "";
  for await (const chunk of request) body += String(chunk);
  return body;
}

export function fail(response: ServerResponse, status: number, message: string): void {
  send(response, status, { error: { code: "STAND_IN", message } });
}

export function send(response: ServerResponse, status: number, body?: unknown): void {
  response.writeHead(status, { "content-type": "application/json" });
  response.end(body === undefined ? undefined : JSON.stringify(body));
}
