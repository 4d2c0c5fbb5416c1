/**
 * Connects and logs in.
 */
import { readFile } from "node:fs/promises";
import { type ChannelModel, connect, credentials } from "amqplib";
import { BrokerError } from "../broker.ts";
import { reasonOf } from "../log.ts";
import { type AmqpAddress, parseAmqpUrl } from "./address.ts";
import type { AmqpConfig, AmqpTlsFiles } from "./config.ts";
import { connectFailure } from "./failures.ts";

/** Milliseconds for TCP, TLS and the handshake. */
const connectTimeoutMs = 10_000;

/** Seconds between heartbeats; a peer that misses two is gone. */
const heartbeatSeconds = 15;

/** Bytes of a frame, RabbitMQ's default: headers have to fit into one. */
const frameMaxBytes = 131_072;

export interface LoginOptions extends Pick<AmqpConfig, "url" | "tls"> {
  /** With the purpose the name of the connection on the broker. */
  readonly workerId: string;
  readonly purpose: "receiving" | "publishing";
}

/** An open connection; aborting `socket` breaks it. */
export interface Login {
  readonly model: ChannelModel;
  readonly socket: AbortController;
}

/** Connects to the first host that accepts the login. Prefers a transient error to throw. */
export async function logIn(options: LoginOptions, signal: AbortSignal): Promise<Login> {
  const failures: BrokerError[] = [];
  for (const address of parseAmqpUrl(options.url) ?? []) {
    try {
      return await logInAt(address, options, signal);
    } catch (error) {
      if (!(error instanceof BrokerError)) throw error;
      failures.push(error);
    }
  }
  const unusable = new BrokerError("The URL of the broker is none of RabbitMQ", {
    transient: false,
  });
  throw failures.find(({ transient }) => transient) ?? failures[0] ?? unusable;
}

async function logInAt(
  address: AmqpAddress,
  options: LoginOptions,
  signal: AbortSignal,
): Promise<Login> {
  signal.throwIfAborted();
  // amqplib knows no signals; the socket beneath it does.
  const socket = new AbortController();
  const timeout = AbortSignal.timeout(connectTimeoutMs);
  const hangUp = (): void => socket.abort();
  const given = AbortSignal.any([signal, timeout]);
  given.addEventListener("abort", hangUp, { once: true });
  try {
    const tls = address.isEncrypted ? await readTls(options.tls) : {};
    return { model: await open(address, tls, options, socket.signal), socket };
  } catch (error) {
    socket.abort();
    signal.throwIfAborted();
    if (error instanceof BrokerError) throw error;
    const reason = timeout.aborted ? `no answer within ${connectTimeoutMs} ms` : error;
    throw connectFailure(reason, address);
  } finally {
    given.removeEventListener("abort", hangUp);
  }
}

function open(
  address: AmqpAddress,
  tls: object,
  { workerId, purpose }: LoginOptions,
  signal: AbortSignal,
): Promise<ChannelModel> {
  const { user } = address;
  const identity =
    user === undefined && "cert" in tls
      ? credentials.external()
      : credentials.plain(user?.name ?? "guest", user?.password ?? "guest");
  const server = {
    protocol: address.isEncrypted ? "amqps" : "amqp",
    hostname: address.host,
    port: address.port,
    // amqplib takes it as in a URL.
    vhost: encodeURIComponent(address.virtualHost),
    heartbeat: heartbeatSeconds,
    frameMax: frameMaxBytes,
  };
  return connect(server, {
    ...tls,
    ...{ signal },
    credentials: identity,
    noDelay: true,
    keepAlive: true,
    clientProperties: { connection_name: `${workerId} (${purpose})` },
  });
}

/** Throws a BrokerError that names the file which cannot be read. */
async function readTls(files: AmqpTlsFiles): Promise<object> {
  const [ca, cert, key] = await Promise.all(
    [files.caFile, files.certFile, files.keyFile].map(readPem),
  );
  return {
    ...(ca && { ca }),
    ...(cert && { cert }),
    ...(key && { key }),
    ...(files.keyPassphrase !== undefined && { passphrase: files.keyPassphrase }),
  };
}

async function readPem(file: string | undefined): Promise<Buffer | undefined> {
  if (file === undefined) return undefined;
  try {
    return await readFile(file);
  } catch (error) {
    throw new BrokerError(`Cannot read the PEM file ${file}: ${reasonOf(error)}`, {
      cause: error,
      transient: false,
    });
  }
}
