/**
 * The thread of `schema-checker.ts`: checks values until it is terminated.
 */
import { parentPort } from "node:worker_threads";
import { type CheckRequest, Checks } from "./check.ts";

const checks = new Checks();

parentPort?.on("message", (request: CheckRequest) => {
  parentPort?.postMessage(checks.check(request));
});
parentPort?.postMessage("ready");
