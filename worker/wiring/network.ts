/**
 * Opens the networks of sandboxes that may reach some hosts.
 */
import type { Config } from "../config/config.ts";
import { type WorkerEndpoint, resolveAsHost } from "../egress/dial.ts";
import { Egress } from "../egress/fabric.ts";
import type { Host } from "./host.ts";

/** Ports of the schemes of brokers and stores, for URLs without one. */
const defaultPorts: Readonly<Record<string, number>> = {
  "amqp:": 5672,
  "amqps:": 5671,
  "http:": 80,
  "https:": 443,
  "tcp:": 55_555,
  "tcps:": 55_443,
  "ws:": 80,
  "wss:": 443,
};

/** Opens it; nothing has to be given back. */
export function openEgress(config: Config, host: Host, scratchDir: string): Promise<Egress> {
  return Egress.open({
    scratchDir,
    resolve: resolveAsHost,
    endpoints: endpointsOf(config),
    clock: host.clock,
  });
}

/** The broker, the store and the worker's own listener. */
function endpointsOf({ broker, artifacts, healthPort }: Config): readonly WorkerEndpoint[] {
  const own = { host: "localhost", port: healthPort };
  const { store } = artifacts;
  const storeUrl = "endpoint" in store ? store.endpoint : undefined;
  return [
    own,
    ...brokerEndpoints(broker),
    ...(storeUrl === undefined ? [] : [endpointOf(storeUrl)]),
  ];
}

function brokerEndpoints(broker: Config["broker"]): readonly WorkerEndpoint[] {
  switch (broker.kind) {
    case "dev":
      return [{ host: broker.host, port: broker.port }];
    case "amqp":
      return [endpointOf(broker.url)];
    case "solace":
      return broker.host.split(",").map((url) => endpointOf(url.trim()));
  }
}

function endpointOf(url: string): WorkerEndpoint {
  const { protocol, hostname, port } = new URL(url.includes("://") ? url : `tcp://${url}`);
  const host = hostname.replace(/^\[|\]$/g, "");
  return { host, port: port === "" ? (defaultPorts[protocol] ?? 0) : Number(port) };
}
