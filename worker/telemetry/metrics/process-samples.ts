/**
 * Metrics of the worker's process. They are read when they are asked for: nothing runs in between.
 */
import { readdir } from "node:fs/promises";
import { type MetricName, type Samples, only } from "./catalog.ts";

/** As the clock of the host has it, which may be set since. */
const startSeconds = performance.timeOrigin / 1000;

export const processSamples: Samples<Extract<MetricName, `process_${string}`>> = {
  process_cpu_seconds_total: () => {
    const { user, system } = process.cpuUsage();
    return only((user + system) / 1e6);
  },
  process_resident_memory_bytes: () => only(process.memoryUsage.rss()),
  // One of them is that of the directory.
  process_open_fds: async () => only((await readdir("/proc/self/fd")).length - 1),
  process_start_time_seconds: () => only(startSeconds),
};
