/**
 * Finds the addresses of names for sandboxes, and of the endpoints that no sandbox reaches.
 */
import { readFile } from "node:fs/promises";
import { Resolver, lookup } from "node:dns/promises";
import { SocketAddress, isIP, isIPv4 } from "node:net";
import type { Clock } from "../support/clock.ts";
import { isOwn } from "./addresses.ts";

/** Milliseconds for one question to one name server, and the attempts. */
const questions = { timeout: 2_000, tries: 2 };

/** Milliseconds after which the addresses of an endpoint are looked up again. */
const refreshMs = 30_000;

/** The same where there was no answer: connections wait for it. */
const retryMs = 5_000;

/** Bytes of /etc/hosts that are read. */
const maxHostsBytes = 1024 * 1024;

/** A listener of the worker, its broker or its store. */
export interface WorkerEndpoint {
  readonly host: string;
  readonly port: number;
  /** Whether other ports of the host, unless it is this one, are the same service. */
  readonly hasMorePorts?: boolean;
}

/** The addresses of a name, and for how long they hold. */
export interface Lookup {
  readonly addresses: readonly string[];
  readonly ttlSeconds: number;
}

/** Rejects for a name without addresses, and when the signal aborts. */
export type LookUp = (name: string, signal: AbortSignal) => Promise<Lookup>;

/** The addresses of a name, IPv4 first. Rejects for one without, and when the signal aborts. */
export type Resolve = (name: string, signal: AbortSignal) => Promise<readonly string[]>;

/**
 * By /etc/hosts, else by the host's name servers. Names are taken as they are, without the host's
 * search domains, which would ask for others. Never by getaddrinfo(3), whose threads a slow name
 * server could keep from all others.
 *
 * @param servers name servers in place of the host's, each an address, with `:PORT` if need be
 */
export async function lookUpByHost(
  name: string,
  signal: AbortSignal,
  servers?: readonly string[],
): Promise<Lookup> {
  const text = await readFile("/etc/hosts", "utf8").catch(() => "");
  const known = addressesInHosts(text.slice(0, maxHostsBytes), name);
  // The file may change at any time.
  if (known.length > 0) return { addresses: known, ttlSeconds: 0 };
  const resolver = new Resolver(questions);
  if (servers !== undefined) resolver.setServers(servers);
  const cancel = (): void => resolver.cancel();
  signal.addEventListener("abort", cancel, { once: true });
  try {
    signal.throwIfAborted();
    const withTtl = { ttl: true } as const;
    const both = [resolver.resolve4(name, withTtl), resolver.resolve6(name, withTtl)];
    const [ipv4, ipv6] = await Promise.allSettled(both);
    const found = [ipv4, ipv6].flatMap((one) => (one?.status === "fulfilled" ? one.value : []));
    if (found.length > 0)
      return {
        addresses: found.map(({ address }) => address),
        ttlSeconds: Math.min(...found.map(({ ttl }) => ttl)),
      };
    throw ipv4?.status === "rejected" ? ipv4.reason : new Error("the name has no address");
  } finally {
    signal.removeEventListener("abort", cancel);
  }
}

/** Addresses of a name by a file like hosts(5), IPv4 first, each in the spelling of a socket. */
export function addressesInHosts(text: string, name: string): readonly string[] {
  const found = text
    .split("\n")
    .map((line) =>
      line
        .replace(/#.*/, "")
        .trim()
        .split(/[ \t]+/),
    )
    .filter(([, ...names]) => names.some((one) => one.toLowerCase() === name))
    .map(([address = ""]) => address)
    .filter((address) => isIP(address) !== 0)
    .map(plainAddress);
  return found.toSorted((a, b) => Number(isIPv4(b)) - Number(isIPv4(a)));
}

/** In the one spelling in which addresses are compared. */
function plainAddress(address: string): string {
  return new SocketAddress({ address, family: isIPv4(address) ? "ipv4" : "ipv6" }).address;
}

/** The endpoints of the worker, which no list opens. */
export class WorkerEndpoints {
  readonly #endpoints: readonly WorkerEndpoint[];
  readonly #clock: Pick<Clock, "monotonicMs">;
  readonly #resolve: (host: string) => Promise<readonly string[]>;
  /** Every address that an endpoint had so far. */
  readonly #addresses = new Map<string, Set<string>>();
  readonly #refreshing = new Map<string, Promise<void>>();
  /** When the addresses of an endpoint are looked up again. */
  readonly #dueMs = new Map<string, number>();

  /** @param resolve as the worker itself finds its broker, unless given */
  constructor(
    endpoints: readonly WorkerEndpoint[],
    clock: Pick<Clock, "monotonicMs">,
    resolve: (host: string) => Promise<readonly string[]> = resolveAsProgram,
  ) {
    this.#endpoints = endpoints;
    this.#clock = clock;
    this.#resolve = resolve;
  }

  /** Whether this is an endpoint; also true if an endpoint with this port has no known address. */
  async has(address: string, port: number): Promise<boolean> {
    for (const { host, port: theirs, hasMorePorts = false } of this.#endpoints) {
      if (theirs !== port && !hasMorePorts) continue;
      await this.#refresh(host);
      const known = this.#addresses.get(host);
      if (theirs !== port) {
        if (known?.has(address) === true && !isOwn(address)) return true;
        continue;
      }
      if (known === undefined || known.has(address)) return true;
      if (isOwn(address) && [...known].some(isOwn)) return true;
    }
    return false;
  }

  #refresh(host: string): Promise<void> {
    const running = this.#refreshing.get(host);
    if (running !== undefined) return running;
    if (this.#clock.monotonicMs() < (this.#dueMs.get(host) ?? -Infinity)) return Promise.resolve();
    const refreshing = this.#resolve(host)
      .then((found) => {
        this.#addresses.set(host, new Set([...(this.#addresses.get(host) ?? []), ...found]));
        return refreshMs;
      })
      // What was known stays; without any, the port is closed until there is an answer.
      .catch(() => retryMs)
      .then((waitMs) => {
        this.#dueMs.set(host, this.#clock.monotonicMs() + waitMs);
        this.#refreshing.delete(host);
      });
    this.#refreshing.set(host, refreshing);
    return refreshing;
  }
}

/** By getaddrinfo(3), one at a time for each endpoint: no tool chooses these names. */
async function resolveAsProgram(host: string): Promise<readonly string[]> {
  return (await lookup(host, { all: true })).map(({ address }) => address);
}
