/**
 * The token of the console. Each request has it in a header, which no other page can send, and no
 * other server gets: browsers send cookies to all ports of a host (RFC 6265, 8.5).
 */
import { randomBytes } from "node:crypto";
import type { IncomingMessage } from "node:http";
import { isSecret } from "../../support/text/secret.ts";
import { HttpError } from "./failure.ts";

const tokenBytes = 32;
const scheme = "Bearer ";

/** A random token. */
export function newToken(): string {
  return randomBytes(tokenBytes).toString("base64url");
}

/** Throws HttpError for a request without the token (RFC 6750, 2.1). */
export function requireToken({ headers }: IncomingMessage, token: string): void {
  const { authorization = "" } = headers;
  const given = authorization.startsWith(scheme) ? authorization.slice(scheme.length) : "";
  if (!isSecret(given, token))
    throw new HttpError(401, "WRONG_TOKEN", "Enter the token of this console");
}
