/**
 * Dials what a sandbox may reach: resolves, checks every address, and connects to one of those.
 */
import { lookup } from "node:dns/promises";
import { type Socket, connect } from "node:net";
import type { RefusalReason } from "../protocol/execution.ts";
import { isOwn, isPublic } from "./addresses.ts";
import type { Dialled, Grant } from "./policy.ts";

/** Milliseconds to find the addresses of a name and to connect. */
export const dialTimeoutMs = 10_000;

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

/** What {@link dial} needs to know of the host. */
export interface DialParts {
  readonly resolve: Resolve;
  /** What no sandbox reaches, whatever its lists say. */
  readonly endpoints: readonly WorkerEndpoint[];
}

/** Why nothing was dialled, or could be. */
export class DialError extends Error {
  readonly reason: RefusalReason;

  constructor(reason: RefusalReason, options?: ErrorOptions) {
    super(`a connection was refused: ${reason}`, options);
    this.name = "DialError";
    this.reason = reason;
  }
}

/** A connection to what was dialled; the caller owns it. Throws DialError, the signal's reason. */
export async function dial(
  dialled: Dialled,
  grant: Grant,
  { resolve, endpoints }: DialParts,
  signal: AbortSignal,
): Promise<Socket> {
  const bounded = AbortSignal.any([signal, AbortSignal.timeout(dialTimeoutMs)]);
  const addresses =
    dialled.kind === "name" ? await addressesOf(dialled.name, resolve) : [dialled.address];
  // Each of them: a name with a good and a bad address is not to be trusted.
  for (const address of addresses) {
    if (await isEndpoint(address, dialled.port, { resolve, endpoints }))
      throw new DialError("worker");
    if (!grant.allowsPrivate && (!isPublic(address) || isOwn(address)))
      throw new DialError("not-public");
  }
  let cause: unknown;
  for (const address of addresses.slice(0, maxTried)) {
    try {
      return await connectTo(address, dialled.port, bounded);
    } catch (error) {
      cause = error;
    }
    signal.throwIfAborted();
    if (bounded.aborted) break;
  }
  throw new DialError("unreachable", { cause });
}

async function addressesOf(name: string, resolve: Resolve): Promise<readonly string[]> {
  try {
    return await resolve(name);
  } catch (error) {
    throw new DialError("name-not-found", { cause: error });
  }
}

async function isEndpoint(
  address: string,
  port: number,
  { resolve, endpoints }: DialParts,
): Promise<boolean> {
  for (const { host } of endpoints.filter((endpoint) => endpoint.port === port)) {
    const theirs = await resolve(host).catch((): readonly string[] => []);
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
