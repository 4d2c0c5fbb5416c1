/**
 * Names of the rows that others are compared with, and of those that have aims.
 */
import type { BrokerKind } from "./brokers.ts";
import type { BenchTool } from "./tools.ts";

/** The row that the others are divided by: nothing that starts a process is quicker. */
export const floorRow = "posix_spawn /bin/true";

/** The rows by which it is seen what hardening costs. */
export const hardeningRows = {
  from: "design document's bwrap + true",
  to: "hardened sandbox + true",
  toByGuard: "hardened sandbox + true, guard alone",
} as const;

/** The delays of a worker's event loop. */
export const loopRows = {
  load: "event loop under load",
  flood: "event loop under a status flood",
} as const;

/** Brokers that calls go through; `memory` is in the worker's own process. */
export const brokers: Readonly<Record<BrokerKind | "memory", string>> = {
  memory: "memory broker",
  dev: "DevBroker",
  amqp: "RabbitMQ",
  solace: "SMF broker",
};

/** How many workers share the calls of a batch. */
export const sharingWorkers = 4;

/** A whole call, with no broker. */
export function startRow({ language, weight, start }: BenchTool): string {
  return `${start} start, ${language} ${weight}`;
}

/** From the acquisition of a sandbox that waits to the result in its place. */
export function resultRow({ language, weight, start }: BenchTool): string {
  return `acquire to result, ${language} ${weight}, ${start}`;
}

/** From the acquisition of a sandbox that waits to the report of its end. */
export function insideRow({ language, weight, start }: BenchTool): string {
  return `acquire to exit, ${language} ${weight}, ${start}`;
}

/** A whole call that finds no sandbox waiting, but a live template. */
export const missRow = "template start, none waiting, Python typical";

/** A whole call through a broker. */
export function brokerRow(broker: BrokerKind | "memory", tool: BenchTool): string {
  const { language, weight, start } = tool;
  return `${brokers[broker]}, ${language} ${weight}, ${start}`;
}

/** A batch of calls that only wait, through a broker to so many workers. */
export function batchRow(broker: BrokerKind, workers: number): string {
  return `${brokers[broker]}, a batch of waiting calls, ${workers} ${workers === 1 ? "worker" : "workers"}`;
}

/** The same batches by one worker and by several, whichever brokers are installed. */
export const batchRows = (["amqp", "solace"] as const).map((broker) => ({
  alone: batchRow(broker, 1),
  shared: batchRow(broker, sharingWorkers),
}));
