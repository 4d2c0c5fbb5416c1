/**
 * The task of examples/spreadsheet as calls of an agent, one after the other, and as one program:
 * `node bench/spreadsheet.ts [ROUNDS]`.
 */
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { type AddressInfo, connect, createServer } from "node:net";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import type { Agent } from "../harness/agent.ts";
import { startDevBroker } from "../harness/dev-broker/dev-broker.ts";
import type { JsonObject } from "../worker/support/json/json.ts";
import type { BrokerVariables } from "./brokers.ts";
import { connectAgent } from "./end-to-end.ts";
import { callTimeoutSeconds, environmentOf, makeBase, startTimeoutMs } from "./environment.ts";
import { quantile } from "./measure.ts";
import { quiet } from "./stock.ts";
import { WorkerProcess } from "./worker-process.ts";

const example = join(import.meta.dirname, "../examples/spreadsheet");
/** The best stores that are asked for. */
const count = 3;
const defaultRounds = "10";

/** One way to do the task. */
export interface Way {
  readonly name: string;
  /** That the agent makes. */
  readonly calls: number;
  /** Between agent and broker, in both directions. */
  readonly bytes: number;
  readonly medianMs: number;
  readonly result: unknown;
}

type Call = (tool: string, args?: JsonObject) => Promise<JsonObject>;

/** Does the task in both ways, interleaved over `rounds` rounds after one that does not count. */
export async function compareWays(rounds: number): Promise<readonly Way[]> {
  const signal = AbortSignal.timeout(startTimeoutMs);
  await using stack = new AsyncDisposableStack();
  const base = stack.use(await makeBase());
  const broker = stack.use(await startDevBroker());
  const environment = {
    ...(await environmentOf(base.path, "spreadsheet", [], variablesOf(broker))),
    MANIFEST_PATH: join(example, "manifest.yaml"),
    TOOLS_PYTHON_DIR: join(example, "python"),
  };
  const worker = stack.use(await WorkerProcess.start(environment, signal));
  const relay = stack.use(await startRelay(broker.port));
  const agent = stack.use(
    await connectAgent({ ...broker, kind: "dev", variables: variablesOf(relay) }, signal),
  );
  const program = await readFile(join(example, "best_stores.py"), "utf8");
  const runs = [
    { name: "calls of the agent", run: bestByCalls },
    { name: "one program", run: (call: Call) => bestByProgram(call, program) },
  ];
  const ways = new Map<string, Way & { readonly timesMs: readonly number[] }>();
  for (let round = 0; round <= rounds; round++) {
    for (const { name, run } of runs) {
      await quiet([() => worker.stats()]);
      let calls = 0;
      const bytesBefore = relay.bytes();
      const startMs = performance.now();
      const result = await run((tool, args) => {
        calls++;
        return resultOf(agent, tool, args);
      });
      const elapsedMs = performance.now() - startMs;
      const bytes = relay.bytes() - bytesBefore;
      const timesMs = round === 0 ? [] : [...(ways.get(name)?.timesMs ?? []), elapsedMs];
      const medianMs = quantile(
        timesMs.toSorted((a, b) => a - b),
        0.5,
      );
      ways.set(name, { name, calls, bytes, medianMs, result, timesMs });
    }
  }
  return [...ways.values()].map(({ timesMs: _, ...way }) => way);
}

/** What an agent does whose model reads each answer. */
async function bestByCalls(call: Call): Promise<unknown> {
  const stores = (await call("stores"))["stores"] as readonly string[];
  const totals: (readonly [string, number])[] = [];
  for (const store of stores) {
    const rows = (await call("rows", { store }))["rows"] as unknown as readonly SheetRow[];
    totals.push([store, rows.reduce((sum, { units, cents }) => sum + units * cents, 0)]);
  }
  return Object.fromEntries(totals.toSorted(([, a], [, b]) => b - a).slice(0, count));
}

interface SheetRow {
  readonly units: number;
  readonly cents: number;
}

async function bestByProgram(call: Call, code: string): Promise<unknown> {
  return (await call("run_program", { code, inputs: { count } }))["value"];
}

async function resultOf(agent: Agent, tool: string, args: JsonObject = {}): Promise<JsonObject> {
  const answer = await agent.call({ tool, args, timeoutSeconds: callTimeoutSeconds });
  if (answer.kind !== "success") throw new Error(JSON.stringify(answer));
  return answer.toolResult;
}

interface Address {
  readonly host: string;
  readonly port: number;
}

function variablesOf({ host, port }: Address): BrokerVariables {
  return { DEV_BROKER_HOST: host, DEV_BROKER_PORT: String(port) };
}

/** Counts the bytes of connections to a port of this machine. The caller disposes it. */
async function startRelay(port: number): Promise<Address & AsyncDisposable & { bytes(): number }> {
  const host = "127.0.0.1";
  let bytes = 0;
  const server = createServer((client) => {
    const upstream = connect(port, host);
    for (const socket of [client, upstream])
      socket.on("data", (chunk: Buffer) => (bytes += chunk.byteLength));
    void pipeline(client, upstream, client).catch(() => undefined);
  });
  server.listen(0, host);
  await once(server, "listening");
  return {
    host,
    port: (server.address() as AddressInfo).port,
    bytes: () => bytes,
    async [Symbol.asyncDispose]() {
      const closed = once(server, "close");
      server.close();
      await closed;
    },
  };
}

if (import.meta.main) {
  const ways = await compareWays(Number(process.argv[2] ?? defaultRounds));
  for (const { name, calls, bytes, medianMs, result } of ways)
    console.log(`${name}: calls ${calls}, bytes ${bytes}, ${medianMs.toFixed(0)} ms`, result);
}
