/**
 * The network of one sandbox that may reach some hosts: name service and connections, served by
 * sockets of the worker inside the sandbox's namespace.
 *
 * A connection passes these files in order: dns.ts and names.ts give the name an address inside.
 * tcp.ts accepts the connection, or http-proxy.ts in front of it. policy.ts finds its rules.
 * upstream.ts resolves, checks and connects. first-bytes.ts checks what the tool sends. tcp.ts
 * copies the bytes, or edge/edge.ts serves the requests. record.ts keeps the outcome.
 */
import { mkdir, realpath, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { NetworkPolicy } from "../protocol/network-rules.ts";
import {
  type NamespaceSockets,
  type OpenNetwork,
  type SandboxNetwork,
  sandboxHostName,
} from "../sandbox/network/sockets.ts";
import type { Profile } from "../sandbox/profile.ts";
import { SandboxError } from "../sandbox/sandbox.ts";
import type { Clock } from "../support/clock.ts";
import type { UpstreamParts } from "./upstream.ts";
import { serveNames } from "./dns.ts";
import type { CertificateAuthority } from "./edge/authority.ts";
import { type CredentialError, CredentialValues, placeholdersOf } from "./edge/credentials.ts";
import { Edge } from "./edge/edge.ts";
import { Trust } from "./edge/trust.ts";
import { HttpProxy, proxyPlace, proxyVariables } from "./http-proxy.ts";
import { SandboxNames } from "./names.ts";
import { knowsName, portsOf } from "./policy.ts";
import { NetworkRecord } from "./record.ts";
import { Connections, idleMs } from "./tcp.ts";

/** Files of name service inside sandboxes: resolv.conf(5), nsswitch.conf(5), hosts(5). */
const nameServiceFiles: Readonly<Record<string, string>> = {
  "resolv.conf": "nameserver 127.0.0.1\noptions timeout:1 attempts:2\n",
  "nsswitch.conf": "hosts: files dns\n",
  hosts: `127.0.0.1 localhost ${sandboxHostName}\n`,
};

const dnsPlace = { address: "127.0.0.1", port: 53 };

/** Every address of the namespace. */
const anyAddress = "0.0.0.0";

/** What all networks share. */
export interface EgressParts extends UpstreamParts {
  /** A directory from which sandboxes can mount. */
  readonly scratchDir: string;
  readonly clock: Clock;
  /** For credentials; without it `env:` finds no variables, and failures are not reported. */
  readonly credentials?: CredentialParts | undefined;
}

/** Where values of credentials come from. */
export interface CredentialParts {
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Files with the worker's own secrets, which are never sent. */
  readonly ownFiles?: readonly string[];
  readonly onFailed: (error: CredentialError) => void;
}

/** Makes networks of sandboxes. */
export class Egress {
  readonly #parts: EgressParts;
  readonly #files: ReadonlyMap<string, string>;
  /** The same by the targets of links in the host's /etc, for sandboxes that see all of it. */
  readonly #linkedFiles: ReadonlyMap<string, string>;
  readonly #trust: Trust;
  readonly #credentials: CredentialValues;

  private constructor(
    parts: EgressParts,
    files: ReadonlyMap<string, string>,
    linkedFiles: ReadonlyMap<string, string>,
  ) {
    this.#parts = parts;
    this.#files = files;
    this.#linkedFiles = linkedFiles;
    this.#trust = new Trust(join(parts.scratchDir, "network"), parts.clock);
    this.#credentials = new CredentialValues(
      parts.credentials?.environment ?? {},
      parts.credentials?.ownFiles,
    );
  }

  /** Writes the files that sandboxes mount; they go with the scratch directory. */
  static async open(parts: EgressParts): Promise<Egress> {
    const directory = join(parts.scratchDir, "network");
    await mkdir(directory, { recursive: true, mode: 0o755 });
    const written = Object.entries(nameServiceFiles).map(async ([name, content]) => {
      const source = join(directory, name);
      await writeFile(source, content, { mode: 0o644 });
      return [`/etc/${name}`, source] as const;
    });
    const files = await Promise.all(written);
    const linked = files.map(async ([path, source]) => {
      return [await realpath(path).catch(() => path), source] as const;
    });
    return new Egress(parts, new Map(files), new Map(await Promise.all(linked)));
  }

  /**
   * The network of sandboxes of a profile; undefined where it has none or the host's. Rejects with
   * SandboxError with `isEgress` where a file cannot be written.
   */
  async networkOf({
    network: policy,
    readsEtc,
  }: Pick<Profile, "network" | "readsEtc">): Promise<SandboxNetwork | undefined> {
    if (typeof policy === "string") return undefined;
    const trusted = await this.#trust.of(policy).catch((cause: unknown) => {
      throw new SandboxError("an authority cannot be written", { cause, isEgress: true });
    });
    const files = readsEtc ? this.#linkedFiles : this.#files;
    const placeholders = placeholdersOf(policy, this.#credentials);
    return {
      files: new Map([...files, ...(trusted?.files ?? [])]),
      environment: new Map([...proxyVariables, ...placeholders, ...(trusted?.environment ?? [])]),
      open: (sockets, signal) => this.#serve(policy, trusted?.authority, sockets, signal),
    };
  }

  async #serve(
    policy: NetworkPolicy,
    authority: CertificateAuthority | undefined,
    sockets: NamespaceSockets,
    signal: AbortSignal,
  ): Promise<OpenNetwork> {
    const { clock } = this.#parts;
    const places = portsOf(policy).map((port) => ({ address: anyAddress, port }));
    const tcp = [dnsPlace, proxyPlace, ...places];
    const opened = await sockets.open({ tcp, udp: [dnsPlace] }, signal);
    const [dnsServer, proxyServer, ...servers] = opened.tcp;
    const [dnsSocket] = opened.udp;
    if (dnsServer === undefined || proxyServer === undefined || dnsSocket === undefined)
      throw new Error("no sockets");
    const names = new SandboxNames();
    const ended = new AbortController();
    const record = new NetworkRecord(clock);
    const addressOf = (name: string): string | undefined => {
      if (knowsName(policy, name)) return names.addressOf(name);
      record.refuseName(name);
      return undefined;
    };
    serveNames(dnsSocket, dnsServer, addressOf, () => clock.monotonicMs());
    const edge = authority && this.#edgeOf(authority, ended.signal);
    const connections = new Connections({
      ...{ policy, names, record, host: this.#parts, edge },
      onLast: () => servers.forEach((server) => server.close()),
      signal: ended.signal,
    });
    for (const server of servers) server.on("connection", (client) => connections.take(client));
    const { maxConnections } = policy;
    const proxy = new HttpProxy({ connections, record, maxConnections, signal: ended.signal });
    proxyServer.on("connection", (client) => proxy.take(client));
    return {
      usage: record,
      connections: record,
      [Symbol.asyncDispose]: () => {
        ended.abort(new Error("the sandbox is gone"));
        opened[Symbol.dispose]();
        return Promise.resolve();
      },
    };
  }

  #edgeOf(authority: CertificateAuthority, signal: AbortSignal): Edge {
    const credentials = this.#credentials;
    const onCredentialFailed = this.#parts.credentials?.onFailed ?? (() => undefined);
    const host = this.#parts;
    return new Edge({ authority, credentials, onCredentialFailed, host, idleMs, signal });
  }
}
