/**
 * Rows of whole calls, from an agent's message to the answer, through each broker there is.
 */
import { Agent } from "../harness/agent.ts";
import { chooseBroker, openClientBroker, silentLog } from "../harness/client/broker-choice.ts";
import type { Answer } from "../harness/messages.ts";
import { createMemoryBroker } from "../test/fakes/memory-broker/broker.ts";
import { reconnecting } from "../worker/broker/reconnecting.ts";
import { readConfig } from "../worker/config/config.ts";
import { type StartKind, startKinds } from "../worker/protocol/execution.ts";
import { isJsonObject } from "../worker/support/json/json.ts";
import { createLogger } from "../worker/telemetry/logger.ts";
import { createHost } from "../worker/wiring/host.ts";
import { Worker } from "../worker/worker.ts";
import { type BrokerKind, type RunningBroker, startBroker } from "./brokers.ts";
import { callTimeoutSeconds, environmentOf, namespace, noBroker } from "./environment.ts";
import { type Row, timed } from "./measure.ts";
import { MemoryAgent } from "./memory-agent.ts";
import { brokerRow } from "./names.ts";
import { type StockView, hitsOf, statsOf } from "./stock.ts";
import { brokerTools, nameOf } from "./tools.ts";
import { WorkerProcess } from "./worker-process.ts";

/** Rows, and what they need. The caller disposes it. */
export interface BrokerRows extends AsyncDisposable {
  readonly rows: readonly Row[];
  readonly stock: StockView;
}

/** The same, and who answers and who asks. */
export interface ConnectedRows extends BrokerRows {
  readonly agent: Agent;
  readonly worker: WorkerProcess;
}

/** Broker, worker and agent in this process. */
export async function openMemoryRows(base: string, signal: AbortSignal): Promise<BrokerRows> {
  await using owned = new AsyncDisposableStack();
  const environment = await environmentOf(base, "memory", brokerTools, noBroker);
  const config = readConfig(environment);
  const log = createLogger(config.logLevel, process.stderr.fd);
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

/** The agent in this process, the worker in one of its own. */
export async function openBrokerRows(
  kind: BrokerKind,
  base: string,
  signal: AbortSignal,
): Promise<ConnectedRows> {
  await using owned = new AsyncDisposableStack();
  const broker = owned.use(await startBroker(kind));
  const environment = await environmentOf(base, kind, brokerTools, broker.variables);
  const worker = owned.use(await WorkerProcess.start(environment, signal));
  const agent = owned.use(await connectAgent(broker, signal));
  const stock: StockView = () => worker.stats();
  const rows = rowsOf(kind, stock, (tool) =>
    agent.call({ tool, timeoutSeconds: callTimeoutSeconds }),
  );
  const all = owned.move();
  return { rows, stock, agent, worker, [Symbol.asyncDispose]: () => all.disposeAsync() };
}

/** An agent on a broker, which the caller disposes. */
export async function connectAgent(
  { kind, variables }: RunningBroker,
  signal: AbortSignal,
  inNamespace = namespace,
): Promise<Agent> {
  const { config } = chooseBroker(kind, { namespace: inNamespace, environment: variables });
  const who = { namespace: inNamespace, name: "bench" };
  const broker = await openClientBroker(config, { ...who, connectRetries: 1, log: silentLog });
  return Agent.on(broker, who, signal);
}

function rowsOf(
  broker: BrokerKind | "memory",
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
