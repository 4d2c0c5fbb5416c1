/**
 * Where a Solace broker is, in the one spelling that the client library takes.
 */
import { isIPv6 } from "node:net";
import { isLoopback } from "../../support/loopback.ts";

/** Schemes, with the spelling of other libraries. */
const protocols: ReadonlyMap<string, Protocol> = new Map([
  ["tcp", "tcp"],
  ["smf", "tcp"],
  ["tcps", "tcps"],
  ["smfs", "tcps"],
  ["ws", "ws"],
  ["wss", "wss"],
]);

const defaultPorts = { tcp: 55_555, tcps: 55_443, ws: 80, wss: 443 } as const;

type Protocol = keyof typeof defaultPorts;

const maxHosts = 16;

/**
 * Reads hosts, with or without scheme and port and separated by commas, into URLs such as
 * `tcp://broker:55555`. Without a scheme port 55443 means TLS, any other port TCP. Undefined for
 * any other text, a URL with a user or a path included.
 */
export function parseSolaceHosts(text: string): readonly string[] | undefined {
  const hosts = text.split(",").map((part) => parseHost(part.trim()));
  const urls = hosts.filter((url) => url !== undefined);
  return urls.length === hosts.length && urls.length <= maxHosts ? urls : undefined;
}

/** Whether one of these URLs is reached over a network without TLS. */
export function isClearText(urls: readonly string[]): boolean {
  return urls.some((url) => /^(?:tcp|ws):/.test(url) && !isLoopback(new URL(url).hostname));
}

export function isEncrypted(urls: readonly string[]): boolean {
  return urls.every((url) => /^(?:tcps|wss):/.test(url));
}

function parseHost(text: string): string | undefined {
  const parts = /^(?:([a-z]+):\/\/)?(\[[^\]]*\]|[A-Za-z0-9._-]+)(?::(\d{1,5}))?\/?$/.exec(text);
  const [, scheme, host = "", portText] = parts ?? [];
  const isHost = host.startsWith("[") ? isIPv6(host.slice(1, -1)) : host !== "";
  const port = portText === undefined ? undefined : Number(portText);
  const protocol = scheme === undefined ? protocolOf(port) : protocols.get(scheme);
  if (!isHost || protocol === undefined) return undefined;
  if (port !== undefined && (port < 1 || port > 65_535)) return undefined;
  return `${protocol}://${host}:${port ?? defaultPorts[protocol]}`;
}

function protocolOf(port: number | undefined): Protocol {
  return port === defaultPorts.tcps ? "tcps" : "tcp";
}
