/**
 * Names of the rows that others are compared with, and of those that have aims.
 */
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

/** Brokers that calls go through. */
export const brokers = { memory: "memory broker", dev: "DevBroker" } as const;

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
export function brokerRow(broker: keyof typeof brokers, tool: BenchTool): string {
  const { language, weight, start } = tool;
  return `${brokers[broker]}, ${language} ${weight}, ${start}`;
}
