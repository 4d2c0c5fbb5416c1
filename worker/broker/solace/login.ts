/**
 * How a session of the library is set up, every property of it.
 */
import { hostname } from "node:os";
import solace from "solclientjs";
import { newId } from "../../support/ids.ts";
import { BrokerError } from "../broker.ts";
import type { BrokerLog } from "../log.ts";
import type { SolaceConfig } from "./config.ts";
import { loginProperties } from "./credentials.ts";
import { library, textOf } from "./library.ts";

/** Milliseconds for TCP, TLS and the login on one host; the library's own limit is a day. */
export const connectTimeoutMs = 10_000;

/** Milliseconds for the answer to a request. */
export const requestTimeoutMs = 30_000;

/** Milliseconds between signs of life, and how many of the broker's may be missing. */
const keepAliveIntervalMs = 3_000;
const keepAliveMissesLimit = 5;

/** Bytes that may wait for the socket; a larger message goes when there are none. */
const sendBufferBytes = 4 * 1024 * 1024;

/** Guaranteed messages on their way without a confirmation, the library's most. */
const publishWindow = 255;

/** Where to connect, as whom, and who is told. */
export interface ConnectionOptions extends Pick<
  SolaceConfig,
  "host" | "vpn" | "username" | "password" | "oauthToken" | "oauthTokenFile" | "tls"
> {
  readonly workerId: string;
  readonly log: BrokerLog;
}

/**
 * A session that is not connected. Throws BrokerError for what the library or the host cannot use.
 */
export async function createLibrarySession(
  options: ConnectionOptions,
  urls: readonly string[],
): Promise<solace.Session> {
  const { SolclientFactory } = library(options.log);
  const login = await loginProperties(options, urls);
  const properties = { ...sessionProperties(options, urls), ...login };
  try {
    return SolclientFactory.createSession(new solace.SessionProperties(properties));
  } catch (error) {
    throw new BrokerError(`Cannot use the configuration of the broker: ${textOf(error)}`, {
      cause: error,
      transient: false,
    });
  }
}

function sessionProperties(
  { vpn, workerId }: ConnectionOptions,
  urls: readonly string[],
): Partial<solace.SessionProperties> {
  return {
    url: [...urls],
    vpnName: vpn,
    // The broker lets a name in once; the worker's own, before it is missed, must not keep this one
    // out.
    clientName: `str-worker/${workerId}/${newId()}`,
    applicationDescription: `secure tool worker ${workerId} on ${hostname()}`,
    connectTimeoutInMsecs: connectTimeoutMs,
    connectRetries: 0,
    connectRetriesPerHost: 0,
    reconnectRetries: 0,
    keepAliveIntervalInMsecs: keepAliveIntervalMs,
    keepAliveIntervalsLimit: keepAliveMissesLimit,
    readTimeoutInMsecs: requestTimeoutMs,
    sendBufferMaxSize: sendBufferBytes,
    generateSendTimestamps: true,
    // Every worker says what its queues take, and those that others have served take it already.
    ignoreDuplicateSubscriptionError: true,
    ignoreSubscriptionNotFoundError: true,
    publisherProperties: new solace.MessagePublisherProperties({
      enabled: true,
      windowSize: publishWindow,
      acknowledgeMode: solace.MessagePublisherAcknowledgeMode.PER_MESSAGE,
    }),
  };
}
