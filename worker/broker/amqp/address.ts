/**
 * Where the nodes of a RabbitMQ broker are and as whom to log in, read from a URL.
 */

export interface AmqpAddress {
  readonly isEncrypted: boolean;
  readonly host: string;
  readonly port: number;
  readonly virtualHost: string;
  readonly user: { readonly name: string; readonly password: string } | undefined;
  /** For logs and errors, without user and password: `amqps://host:5671/vhost`. */
  readonly name: string;
}

const amqpPort = 5_672;
const amqpsPort = 5_671;

const maxHosts = 16;

/**
 * The address of each host of `amqp[s]://user:password@host:port,host:port/vhost`; every part but
 * one host may be missing. Undefined for any other text, a URL with a query included.
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
    // An "@" here ends a password with a "/", before which the URL parser saw the host.
    const path = /^\/?([^/@]*)$/.exec(url.pathname)?.[1];
    const isUsable = (isEncrypted || url.protocol === "amqp:") && url.hostname !== "";
    if (!isUsable || path === undefined || url.search !== "" || url.hash !== "") return undefined;
    const port = url.port === "" ? (isEncrypted ? amqpsPort : amqpPort) : Number(url.port);
    const virtualHost = path === "" ? "/" : decodeURIComponent(path);
    const [name, password] = [decodeURIComponent(url.username), decodeURIComponent(url.password)];
    return {
      isEncrypted,
      host: url.hostname.replace(/^\[|\]$/g, ""),
      port,
      virtualHost,
      user: name === "" ? undefined : { name, password },
      name: `${url.protocol}//${url.hostname}:${port}/${encodeURIComponent(virtualHost)}`,
    };
  } catch {
    return undefined; // not a URL, or with an escape that is none
  }
}
