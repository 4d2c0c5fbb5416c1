/**
 * Rows of whole calls, from an agent's message to the answer, through each broker there is.
 */
import { Agent } from "../harness/agent.ts";
import { startDevBroker } from "../harness/dev-broker.ts";
import type { Answer } from "../harness/messages.ts";
import { createMemoryBroker } from "../worker/broker/memory/broker.ts";
import { reconnecting } from "../worker/broker/reconnecting.ts";
import { createHost } from "../worker/app.ts";
import { readConfig } from "../worker/config.ts";
import { type StartKind, startKinds } from "../worker/protocol/execution.ts";
import { isJsonObject } from "../worker/support/json.ts";
import { createLogger } from "../worker/telemetry/logger.ts";
import { Worker } from "../worker/worker.ts";
import { callTimeoutSeconds, environmentOf, nobody } from "./environment.ts";
import { type Row, timed } from "./measure.ts";
import { MemoryAgent } from "./memory-agent.ts";
import { brokerRow, type brokers } from "./names.ts";
import { type StockView, hitsOf, statsOf } from "./stock.ts";
import { brokerTools, nameOf } from "./tools.ts";
import { WorkerProcess } from "./worker-process.ts";

/** Rows, and what they need. The caller disposes it. */
export interface BrokerRows extends AsyncDisposable {
  readonly rows: readonly Row[];
  readonly stock: StockView;
}

/** The same, and the worker that answers, which is a process of its own. */
export interface DevBrokerRows extends BrokerRows {
  readonly agent: Agent;
  readonly worker: WorkerProcess;
}

/** Broker, worker and agent in this process. */
export async function openMemoryRows(base: string, signal: AbortSignal): Promise<BrokerRows> {
  await using owned = new AsyncDisposableStack();
  const environment = await environmentOf(base, "memory", brokerTools, nobody);
  const config = readConfig(environment);
  const log = createLogger(config.logLevel, process.stderr.fd);
  const { namespace } = config;
  const broker = createMemoryBroker({ namespace });
  const options = { log, maxAttempts: 1, backoff: { baseMs: 1, capMs: 1 } };
  const worker = owned.use(
    new Worker(config, createHost(log, environment), { broker: reconnecting(broker, options) }),
  );
  await worker.start(signal);
  const agent = owned.use(new MemoryAgent(broker, namespace));
  const stock: StockView = () => Promise.resolve(statsOf(worker.starts));
  const rows = rowsOf("memory", stock, (tool) => agent.call(tool));
  const all = owned.move();
  return { rows, stock, [Symbol.asyncDispose]: () => all.disposeAsync() };
}

/** Broker and agent in this process, the worker in one of its own. */
export async function openDevBrokerRows(base: string, signal: AbortSignal): Promise<DevBrokerRows> {
  await using owned = new AsyncDisposableStack();
  const broker = owned.use(await startDevBroker());
  const environment = await environmentOf(base, "dev", brokerTools, broker);
  const worker = owned.use(await WorkerProcess.start(environment, signal));
  const { host, port } = broker;
  const { namespace } = readConfig(environment);
  const agent = owned.use(await Agent.connect({ host, port, namespace }, signal));
  const stock: StockView = () => worker.stats();
  const rows = rowsOf("dev", stock, (tool) =>
    agent.call({ tool, timeoutSeconds: callTimeoutSeconds }),
  );
  const all = owned.move();
  return { rows, stock, agent, worker, [Symbol.asyncDispose]: () => all.disposeAsync() };
}

function rowsOf(
  broker: keyof typeof brokers,
  stock: StockView,
  call: (
    tool: string,
  ) => Promise<{ readonly kind: string; readonly response?: Answer["response"] }>,
): readonly Row[] {
  return brokerTools.map((tool) => ({
    name: brokerRow(broker, tool),
    kind: tool.start,
    run: timed(async () => {
      const answer = await call(nameOf(tool));
      if (answer.kind !== "success") throw new Error(JSON.stringify(answer));
      return startOf(answer.response);
    }),
    ...(tool.start === "template" && { hits: () => hitsOf(stock, nameOf(tool)) }),
  }));
}

/** How the call came to its sandbox, as the answer says. */
function startOf(response: Answer["response"]): StartKind | undefined {
  const result = response?.["result"];
  const execution = isJsonObject(result) ? result["execution"] : undefined;
  const start = isJsonObject(execution) ? execution["start"] : undefined;
  return startKinds.find((kind) => kind === start);
}
