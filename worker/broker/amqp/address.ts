/**
 * Where the nodes of a RabbitMQ broker are and as whom to log in, read from a URL.
 */

/** An AMQP URL in parts, without its password where people read it. */
export interface AmqpAddress {
  readonly isEncrypted: boolean;
  readonly host: string;
  readonly port: number;
  readonly virtualHost: string;
  /** Undefined when the URL names no user. */
  readonly user: { readonly name: string; readonly password: string } | undefined;
  /** For logs and errors: `amqps://host:5671/vhost`. */
  readonly name: string;
}

const amqpPort = 5_672;
const amqpsPort = 5_671;

/** Nodes that a URL may name. */
const maxHosts = 16;

/**
 * Reads `amqp[s]://user:password@host:port,host:port/vhost`; every part but one host may be
 * missing. Undefined when the text is something else, a URL with a query included: what would be
 * asked for there is fixed here.
 *
 * @returns an address for each host, in their order
 */
export function parseAmqpUrl(text: string): readonly AmqpAddress[] | undefined {
  const [, before = "", hosts = "", after = ""] =
    /^(\w+:\/\/(?:[^/?#]*@)?)([^/?#]*)(.*)$/s.exec(text) ?? [];
  const addresses = hosts.split(",").map((host) => parseAddress(`${before}${host}${after}`));
  const known = addresses.filter((address) => address !== undefined);
  return known.length === addresses.length && known.length <= maxHosts ? known : undefined;
}

function parseAddress(text: string): AmqpAddress | undefined {
  try {
    const url = new URL(text);
    const isEncrypted = url.protocol === "amqps:";
    // An "@" there ends a password with a "/" in it, all before which was taken for the host.
    const path = /^\/?([^/@]*)$/.exec(url.pathname)?.[1];
    const isUsable = (isEncrypted || url.protocol === "amqp:") && url.hostname !== "";
    if (!isUsable || path === undefined || url.search !== "" || url.hash !== "") return undefined;
    const port = url.port === "" ? (isEncrypted ? amqpsPort : amqpPort) : Number(url.port);
    const virtualHost = path === "" ? "/" : decodeURIComponent(path);
    return {
      isEncrypted,
      host: url.hostname.replace(/^\[|\]$/g, ""),
      port,
      virtualHost,
      user:
        url.username === ""
          ? undefined
          : {
              name: decodeURIComponent(url.username),
              password: decodeURIComponent(url.password),
            },
      name: `${url.protocol}//${url.hostname}:${port}/${encodeURIComponent(virtualHost)}`,
    };
  } catch {
    return undefined; // not a URL, or with an escape that is none
  }
}
