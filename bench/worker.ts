/**
 * A worker in a process of its own, which tells the benchmark what is going on in it.
 *
 * Whoever starts it sends a {@link Question} at a time and gets the answer. It ends when nobody can
 * ask any more.
 */
import { once } from "node:events";
import { readConfig } from "../worker/config/config.ts";
import { createLogger } from "../worker/telemetry/logger.ts";
import { createHost } from "../worker/wiring/host.ts";
import { Worker } from "../worker/worker.ts";
import { startTimeoutMs } from "./environment.ts";
import { LoopDelays } from "./loop-delays.ts";
import { statsOf } from "./stock.ts";
import type { Question } from "./worker-process.ts";

const config = readConfig(process.env);
const log = createLogger(config.logLevel, process.stderr.fd);
const disconnected = once(process, "disconnect");
await using worker = new Worker(config, createHost(log, process.env));
await worker.start(AbortSignal.timeout(startTimeoutMs));
const delays = new LoopDelays();

function liveBytes(): number {
  globalThis.gc?.();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

process.on("message", (question: Question) => {
  switch (question) {
    case "stats":
      return process.send?.(statsOf(worker.starts));
    case "delays":
      return process.send?.(delays.take());
    case "resources":
      return process.send?.(process.getActiveResourcesInfo().length);
    case "live":
      return process.send?.(liveBytes());
  }
});
process.send?.("ready");
await disconnected;
