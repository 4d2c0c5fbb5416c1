/**
 * The task of examples/spreadsheet as calls of an agent, one after the other, and as one program:
 * `node bench/spreadsheet.ts [ROUNDS]`.
 */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { Agent } from "../harness/agent.ts";
import { startDevBroker } from "../harness/dev-broker/dev-broker.ts";
import type { JsonObject } from "../worker/support/json/json.ts";
import { connectAgent } from "./end-to-end.ts";
import { callTimeoutSeconds, environmentOf, makeBase, startTimeoutMs } from "./environment.ts";
import { quantile } from "./measure.ts";
import { quiet } from "./stock.ts";
import { WorkerProcess } from "./worker-process.ts";

const example = join(import.meta.dirname, "../examples/spreadsheet");
/** The best stores that are asked for. */
const count = 3;

/** A row of a page. */
interface SheetRow {
  readonly units: number;
  readonly cents: number;
}

/** One way to do the task. */
export interface Way {
  readonly name: string;
  /** That the agent makes. */
  readonly calls: number;
  /** Of all requests and of all answers on the broker, topics and properties not counted. */
  readonly sentBytes: number;
  readonly receivedBytes: number;
  /** Median. */
  readonly ms: number;
  readonly result: JsonObject;
}
