/**
 * `harness dev-broker`: a DevBroker until a signal ends it.
 */
import { once } from "node:events";
import { type Context, exit } from "../context.ts";
import { listen } from "./embedded-broker.ts";
import { printable } from "../invoke/screen.ts";
import { workerCommand } from "../worker/worker-command.ts";

/** The command line. */
export interface DevBrokerOptions {
  readonly host: string;
  readonly port: number;
  readonly namespace: string;
}

/**
 * Serves until the context's signal; that is its regular end. Throws CommandError when it cannot
 * listen.
 */
export async function runDevBroker(options: DevBrokerOptions, context: Context): Promise<number> {
  const { out, err, environment, signal } = context;
  await using broker = await listen(options.host, options.port);
  const { host, port } = broker;
  broker.events.on("subscribed", ({ clientId, patterns }) => {
    if (patterns.length === 0) return;
    out.line(printable(`${clientId ?? "(without an id)"} subscribes to ${patterns.join(", ")}`));
  });
  broker.events.on("dropped", ({ clientId, total }) => {
    err.line(printable(`${clientId ?? "(without an id)"} reads too slowly: ${total} dropped`));
  });
  out.line(`DevBroker listens on ${host}:${port}. To start a worker for it:`);
  const { namespace } = options;
  out.line(`\n${await workerCommand({ namespace, host, port, environment })}\n`);
  if (!signal.aborted) await once(signal, "abort");
  return exit.success;
}
