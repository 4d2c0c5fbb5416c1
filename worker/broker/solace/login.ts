/**
 * How a session of the library is set up, and what the broker must be capable of.
 */
import { hostname } from "node:os";
import solace from "solclientjs";
import { newId } from "../../support/ids.ts";
import { BrokerError } from "../broker.ts";
import type { BrokerLog } from "../log.ts";
import type { SolaceConfig } from "./config.ts";
import { loginProperties } from "./library/credentials.ts";
import { library, textOf } from "./library/library.ts";

/** Milliseconds for TCP, TLS and the login on one host; the library's own limit is a day. */
export const connectTimeoutMs = 10_000;

export const requestTimeoutMs = 30_000;

/** Milliseconds between keep-alives, and how many of the broker's may be missing. */
const keepAliveIntervalMs = 3_000;
const keepAliveMissesLimit = 5;

/** Bytes that may wait for the socket; a larger message goes when there are none. */
const sendBufferBytes = 4 * 1024 * 1024;

/** Guaranteed messages without a confirmation, the library's most. */
const publishWindow = 255;

export interface ConnectionOptions extends Pick<
  SolaceConfig,
  "host" | "vpn" | "username" | "password" | "oauthToken" | "oauthTokenFile" | "tls"
> {
  readonly workerId: string;
  readonly log: BrokerLog;
}

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
    // The broker lets a name in once: the worker's former connection must not keep this one out.
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
    // Every worker of the group subscribes the queues.
    ignoreDuplicateSubscriptionError: true,
    ignoreSubscriptionNotFoundError: true,
    publisherProperties: new solace.MessagePublisherProperties({
      enabled: true,
      windowSize: publishWindow,
      acknowledgeMode: solace.MessagePublisherAcknowledgeMode.PER_MESSAGE,
    }),
  };
}

/** What broker and client profile must be capable of, and what to do where they are not. */
const neededCapabilities: ReadonlyMap<solace.CapabilityType, string> = new Map([
  [
    solace.CapabilityType.GUARANTEED_MESSAGE_PUBLISH,
    "does not let the user send guaranteed messages: allow it in its client profile",
  ],
  [
    solace.CapabilityType.GUARANTEED_MESSAGE_CONSUME,
    "does not let the user receive guaranteed messages: allow it in its client profile",
  ],
  [
    solace.CapabilityType.AD_APP_ACK_FAILED,
    "cannot take messages back that were not handled: version 10.2.1 or newer is needed",
  ],
]);

/** What a broker lacks, as the end of a sentence; undefined when it lacks nothing. */
export function missingCapability(
  isCapable: (capability: solace.CapabilityType) => boolean,
): string | undefined {
  return neededCapabilities.entries().find(([capability]) => !isCapable(capability))?.[1];
}
