/**
 * `harness smf-broker`: a Solace broker for tests, until a signal ends it.
 */
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { CommandError, type Context, UsageError, exit } from "../../context.ts";
import type { SmfBroker } from "./broker.ts";
import type { SmfBrokerTls } from "./servers.ts";
import { printable } from "../../invoke/screen.ts";

/** The command line. */
export interface SmfBrokerCommandOptions {
  readonly host: string;
  readonly port: number;
  /** Where it listens for WebSockets; nowhere unless told. */
  readonly wsPort?: number;
  /** Files with the broker's certificate and key, as PEM. */
  readonly tlsCert?: string;
  readonly tlsKey?: string;
}

/**
 * Serves until the context's signal; that is its regular end. Throws CommandError when it cannot
 * listen or read a file, and UsageError when it has only one of certificate and key.
 */
export async function runSmfBroker(
  options: SmfBrokerCommandOptions,
  { out, err, signal }: Context,
): Promise<number> {
  await using broker = await listen(options, await readTls(options));
  broker.events.on("subscribed", ({ clientName, topic, queue }) => {
    const listener = queue === undefined ? clientName : `queue ${queue} of ${clientName}`;
    out.line(printable(`${listener} subscribes to ${topic}`));
  });
  broker.events.on("bound", ({ clientName, queue }) => {
    out.line(printable(`${clientName} consumes from queue ${queue}`));
  });
  broker.events.on("dead", ({ queue, topic, reason, isKept }) => {
    const fate = isKept ? "in the dead message queue" : "dropped";
    err.line(printable(`queue ${queue}: a message to ${topic} is ${fate}: ${reason}`));
  });
  const urls = [broker.url, broker.webUrl].filter((url) => url !== undefined).join(" and ");
  out.line(
    `SMF broker listens on ${urls}; any VPN, user and password will do. Its queues end with it.`,
  );
  if (!signal.aborted) await once(signal, "abort");
  return exit.success;
}

/** Throws CommandError when a port cannot be listened on. */
async function listen(
  { host, port, wsPort: webPort }: SmfBrokerCommandOptions,
  tls: SmfBrokerTls | undefined,
): Promise<SmfBroker> {
  // Every other command does without.
  const { startSmfBroker } = await import("./broker.ts");
  const ports = webPort === undefined ? { port } : { port, webPort };
  try {
    return await startSmfBroker({ host, ...ports, ...(tls && { tls }) });
  } catch (error) {
    const address = `${host}:${Object.values(ports).join(" or ")}`;
    const hint = codeOf(error) === "EADDRINUSE" ? "; port 0 takes a free one" : "";
    throw new CommandError(`cannot listen on ${address}: ${codeOf(error)}${hint}`, {
      cause: error,
    });
  }
}

async function readTls({
  tlsCert,
  tlsKey,
}: SmfBrokerCommandOptions): Promise<SmfBrokerTls | undefined> {
  if (tlsCert === undefined && tlsKey === undefined) return undefined;
  if (tlsCert === undefined || tlsKey === undefined) {
    throw new UsageError("--tls-cert and --tls-key need each other");
  }
  return { cert: await readPem(tlsCert), key: await readPem(tlsKey) };
}

async function readPem(path: string): Promise<Buffer> {
  try {
    return await readFile(path);
  } catch (error) {
    throw new CommandError(`cannot read ${path}: ${codeOf(error)}`, { cause: error });
  }
}

function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : String(error);
}
