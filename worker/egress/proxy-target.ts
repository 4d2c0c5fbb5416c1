/**
 * Where a request to the HTTP proxy leads: RFC 9112, sections 3.2.2 and 3.2.3.
 */
import { isIPv4 } from "node:net";
import { canonicalName } from "../protocol/host-pattern.ts";
import { BadRequestError, type RequestHead, checkMessage, hostHeadersOf } from "./http-server.ts";

/** A name in the form of {@link canonicalName}, or an address of four decimal numbers. */
export interface Authority {
  readonly host: string;
  readonly port: number;
}

/** Where a request leads, with the path and query that are asked for. */
export interface ProxyTarget extends Authority {
  readonly path: string;
}

const httpPort = 80;

/** A Host without a port agrees with these, by the scheme inside of a tunnel. */
const tunnelDefaultPorts = [httpPort, 443];

/** The target of a request with an absolute URI. Throws BadRequestError. */
export function absoluteTarget(request: RequestHead): ProxyTarget {
  const { url = "" } = request;
  checkMessage(request);
  const [, scheme, authorityText = "", rest = ""] =
    /^([a-z][a-z0-9+.-]*):\/\/([^/?#]*)([/?][\x21\x22\x24-\x7e]*)?$/i.exec(url) ?? [];
  if (scheme === undefined)
    throw new BadRequestError("this is a proxy: the target must be an absolute URI");
  if (scheme.toLowerCase() !== "http")
    throw new BadRequestError("the proxy takes http: only; other protocols need CONNECT");
  const authority = parseAuthority(authorityText) ?? fail("the host of the URI is none");
  const target = { host: authority.host, port: authority.port ?? httpPort };
  checkHost(request, target, [httpPort]);
  return { ...target, path: rest.startsWith("/") ? rest : `/${rest}` };
}

/** The target of CONNECT. Throws BadRequestError. */
export function tunnelTarget(request: RequestHead): Authority {
  checkMessage(request);
  const { host, port } = parseAuthority(request.url ?? "") ?? {};
  if (host === undefined || port === undefined) fail("CONNECT needs a host and a port");
  const target = { host, port };
  checkHost(request, target, tunnelDefaultPorts);
  const { headers } = request;
  if (headers["content-length"] !== undefined || headers["transfer-encoding"] !== undefined)
    fail("CONNECT has no body");
  return target;
}

/** Undefined for odd spellings as well: programs differ in what these mean. */
function parseAuthority(text: string): { host: string; port: number | undefined } | undefined {
  const [, host, digits] = /^([a-z0-9._-]+)(?::([0-9]{1,5}))?$/i.exec(text) ?? [];
  if (host === undefined) return undefined;
  const port = digits === undefined ? undefined : Number(digits);
  if (port !== undefined && (port < 1 || port > 65_535)) return undefined;
  if (isIPv4(host)) return { host, port };
  const name = host.toLowerCase().replace(/\.$/, "");
  // 0x7f.1 and 2130706433 become addresses.
  if (name === "" || isIPv4(name) || canonicalName(name) !== name) return undefined;
  return { host: name, port };
}

/** Host must say the same as the target. HTTP/1.0 knows none. */
function checkHost(request: RequestHead, target: Authority, defaultPorts: readonly number[]): void {
  const hosts = hostHeadersOf(request);
  if (hosts.length === 0 && request.httpVersion === "1.0") return;
  const given = hosts.length === 1 ? parseAuthority(hosts[0] ?? "") : undefined;
  const isSame =
    given?.host === target.host &&
    (given.port === undefined ? defaultPorts.includes(target.port) : given.port === target.port);
  if (!isSame) fail("Host must be the host and port of the target");
}

function fail(message: string): never {
  throw new BadRequestError(message);
}
