/**
 * The console of a worker that a command starts.
 */
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import type { Environment } from "../../worker/config/config.ts";
import { loopback } from "../options/options.ts";

const tokenBytes = 24;

/** Variables of a worker with a console on this port; none without a port. */
export function consoleVariables(
  port: number | undefined,
  { CONSOLE_TOKEN: token }: Environment,
): Environment {
  if (port === undefined) return {};
  return {
    CONSOLE_PORT: String(port),
    CONSOLE_HOST: loopback,
    CONSOLE_TOKEN: token || randomBytes(tokenBytes).toString("base64url"),
  };
}

/** Opens the console of these variables. Browsers send no part of it after `#`. */
export function consoleLink({
  CONSOLE_PORT: port,
  CONSOLE_TOKEN: token = "",
}: Environment): string {
  return `http://${loopback}:${port}/#token=${encodeURIComponent(token)}`;
}

/** A port of this machine that nothing listens on now. */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, loopback);
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  await server[Symbol.asyncDispose]();
  return port;
}
