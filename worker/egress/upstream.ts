/**
 * Connects to what a sandbox may reach: resolves, checks every address, takes one of those.
 */
import { lookup } from "node:dns/promises";
import { type Socket, connect } from "node:net";
import type { RefusalReason } from "../protocol/execution.ts";
import { isOwn, isPublic } from "./addresses.ts";
import { abortable } from "../support/timeout.ts";
import type { Destination, Grant } from "./policy.ts";

/** Milliseconds to find the addresses of a name and to connect. */
export const connectTimeoutMs = 10_000;

/** Addresses of a name that are tried. */
const maxTried = 4;

/** A listener of the worker, its broker or its stores: no sandbox ever gets there. */
export interface WorkerEndpoint {
  readonly host: string;
  readonly port: number;
}

/** The addresses of a name, IPv4 first. Rejects for one that has none. */
export type Resolve = (name: string) => Promise<readonly string[]>;

/** As programs of this host find them. */
export const resolveAsHost: Resolve = async (name) => {
  const found = await lookup(name, { all: true, order: "ipv4first" });
  return found.map(({ address }) => address);
};

/** What connecting needs to know of the host. */
export interface UpstreamParts {
  readonly resolve: Resolve;
  /** What no sandbox reaches, whatever its lists say. */
  readonly endpoints: readonly WorkerEndpoint[];
}

/** Why a sandbox is not connected. */
export class RefusedError extends Error {
  readonly reason: RefusalReason;

  constructor(reason: RefusalReason, options?: ErrorOptions) {
    super(`a connection was refused: ${reason}`, options);
    this.name = "RefusedError";
    this.reason = reason;
  }
}

/** A connection; the caller owns it. Throws RefusedError, the signal's reason. */
export async function connectUpstream(
  destination: Destination,
  grant: Grant,
  { resolve, endpoints }: UpstreamParts,
  signal: AbortSignal,
): Promise<Socket> {
  const bounded = AbortSignal.any([signal, AbortSignal.timeout(connectTimeoutMs)]);
  const addresses =
    destination.kind === "name"
      ? await addressesOf(destination.name, resolve, bounded)
      : [destination.address];
  // Each of them: a name with a good and a bad address is not to be trusted.
  for (const address of addresses) {
    if (await isEndpoint(address, destination.port, { resolve, endpoints }, bounded))
      throw new RefusedError("worker");
    if (!grant.allowsPrivate && (!isPublic(address) || isOwn(address)))
      throw new RefusedError("not-public");
  }
  let cause: unknown;
  for (const address of addresses.slice(0, maxTried)) {
    try {
      return await connectTo(address, destination.port, bounded);
    } catch (error) {
      cause = error;
    }
    signal.throwIfAborted();
    if (bounded.aborted) break;
  }
  throw new RefusedError("unreachable", { cause });
}

async function addressesOf(
  name: string,
  resolve: Resolve,
  signal: AbortSignal,
): Promise<readonly string[]> {
  try {
    return await abortable(resolve(name), signal);
  } catch (error) {
    throw new RefusedError("name-not-found", { cause: error });
  }
}

async function isEndpoint(
  address: string,
  port: number,
  { resolve, endpoints }: UpstreamParts,
  signal: AbortSignal,
): Promise<boolean> {
  for (const { host } of endpoints.filter((endpoint) => endpoint.port === port)) {
    const theirs = await addressesOf(host, resolve, signal).catch((): readonly string[] => []);
    if (theirs.includes(address) || (isOwn(address) && theirs.some(isOwn))) return true;
  }
  return false;
}

function connectTo(host: string, port: number, signal: AbortSignal): Promise<Socket> {
  signal.throwIfAborted();
  const socket = connect({ host, port, allowHalfOpen: true, noDelay: true });
  const { promise, resolve, reject } = Promise.withResolvers<Socket>();
  const onAbort = (): void => void socket.destroy(signal.reason as Error);
  signal.addEventListener("abort", onAbort, { once: true });
  socket.once("connect", () => resolve(socket));
  socket.once("error", reject);
  return promise.finally(() => signal.removeEventListener("abort", onAbort));
}
