/**
 * Chaos: workers are killed, connections cut and the broker is restarted while agents call, and everything is counted.
 */
import { once } from "node:events";
import { mkdir, rm, writeFile } from "node:fs/promises";
import { type AddressInfo, createServer } from "node:net";
import { createInterface } from "node:readline";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Answer } from "../../harness/messages.ts";
import { manifestText, reachableDirectory } from "./rig.ts";
import { WorkerProcess } from "./worker-process.ts";

/** A broker that can be treated badly. */
export interface ChaosBroker {
  /** The variables by which a worker finds it. */
  readonly environment: Readonly<Record<string, string>>;
  /** Ends every connection. */
  cut(): Promise<void> | void;
  /** Stops it and starts it again, with everything that is durable. */
  restart(): Promise<void>;
}

/** An agent whose answers wait for it in a durable queue, as those of real agents do. */
export interface ChaosAgent {
  /** Calls, and sends the call again until the broker has confirmed it. Fulfils with the first answer. */
  call(id: string, tool: string, args: object): Promise<Answer>;
}

/** How bad it gets. */
export interface ChaosOptions {
  readonly calls: number;
  readonly inFlight: number;
  readonly workers: number;
  /** Milliseconds between two killed workers, and between two cuts, on average. */
  readonly killEveryMs: number;
  readonly cutEveryMs: number;
}

/** What became of it. */
export interface ChaosReport {
  /** By call: how it was answered, and how often its tool began. */
  readonly calls: readonly {
    readonly id: string;
    readonly tool: ChaosTool;
    readonly ending: string;
    readonly runs: number;
  }[];
  readonly kills: number;
  readonly cuts: number;
}

const chaosTools = ["repeatable", "once"] as const;
type ChaosTool = (typeof chaosTools)[number];

/** Says that it has begun to somebody who counts, and goes on when it was heard. */
const toolSource = `
import socket, time

def run(port, id):
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall((id + "\\n").encode())
        connection.recv(1)
    time.sleep(0.05)
    return {"id": id}
`;

/** Makes calls of tools that may run twice and of tools that must not, in turns, while everything around them breaks. */
export async function makeChaos(
  broker: ChaosBroker,
  agent: ChaosAgent,
  namespace: string,
  options: ChaosOptions,
): Promise<ChaosReport> {
  await using owned = new AsyncDisposableStack();
  const base = await reachableDirectory();
  owned.defer(() => rm(base, { recursive: true, force: true }));
  const runs = new Map<string, number>();
  const counter = await countRuns(runs);
  owned.defer(() => counter.close());
  const toolsDir = join(base, "tools");
  await mkdir(toolsDir);
  await writeFile(join(toolsDir, "effect.py"), toolSource);
  const tool = { module: "effect", function: "run", timeout_seconds: 60 };
  const manifest = { repeatable: tool, once: { ...tool, idempotent: false } };
  await writeFile(join(base, "manifest.yaml"), manifestText(manifest));
  const start = (index: number, life: number): WorkerProcess =>
    new WorkerProcess({
      SAM_NAMESPACE: namespace,
      SAM_WORKER_ID: `worker-${index}-${life}`,
      MANIFEST_PATH: join(base, "manifest.yaml"),
      TOOLS_PYTHON_DIR: toolsDir,
      SANDBOX_WORK_DIR: join(base, `work-${index}`),
      SANDBOX_MAX_CONCURRENT: "2",
      SANDBOX_MIN_FREE_DISK_MB: "1",
      BROKER_MAX_DELIVERIES: "100",
      CONNECT_RETRY_DELAY_MS: "500",
      SOLACE_RECONNECT_DELAY_MS: "500",
      SOLACE_RECONNECT_RETRIES: "0",
      HEALTH_PORT: "0",
      ...broker.environment,
    });
  const workers = Array.from({ length: options.workers }, (_, index) => start(index, 0));
  owned.defer(async () => {
    await Promise.all(workers.map((worker) => worker[Symbol.asyncDispose]()));
  });

  const over = new AbortController();
  let [kills, cuts, answered] = [0, 0, 0];
  const half = Promise.withResolvers<void>();
  const killing = repeat(options.killEveryMs, over.signal, async () => {
    const index = Math.floor(Math.random() * workers.length);
    workers[index]!.child.kill("SIGKILL");
    await workers[index]!.exited;
    workers[index] = start(index, ++kills);
  });
  // One after the other: a broker that is starting has no connections to cut.
  let turn = Promise.resolve();
  const inTurn = (act: () => Promise<void> | void): Promise<void> => (turn = turn.then(act));
  const cutting = repeat(options.cutEveryMs, over.signal, async () => {
    await inTurn(() => broker.cut());
    cuts++;
  });
  const restarting = half.promise.then(() => inTurn(() => broker.restart()));

  const calls: ChaosReport["calls"][number][] = [];
  let next = 0;
  const lane = async (): Promise<void> => {
    while (next < options.calls) {
      const index = next++;
      const id = `call-${index}`;
      const name = chaosTools[index % chaosTools.length]!;
      const answer = await agent.call(id, name, { port: counter.port, id });
      const ending = answer.kind === "error" ? `${answer.code} (${answer.message})` : answer.kind;
      calls.push({ id, tool: name, ending, runs: 0 });
      if (++answered === Math.floor(options.calls / 2)) half.resolve();
    }
  };
  await Promise.all(Array.from({ length: options.inFlight }, lane));
  over.abort();
  await Promise.all([killing, cutting, restarting]);
  return {
    calls: calls.map((call) => ({ ...call, runs: runs.get(call.id) ?? 0 })),
    kills,
    cuts,
  };
}

/** What was promised and not kept, a line for each call. */
export function brokenPromises({ calls }: ChaosReport): readonly string[] {
  return calls
    .filter(({ tool, ending, runs }) => {
      const isAnswered =
        ending === "success" || (tool === "once" && ending.startsWith("NOT_REPEATED"));
      return !isAnswered || (ending === "success" && runs === 0) || (tool === "once" && runs > 1);
    })
    .map(({ id, tool, ending, runs }) => `${id}, ${tool}: ${ending} after ${runs} runs`);
}

/** Counts, by call, how often its tool said that it had begun. */
async function countRuns(
  runs: Map<string, number>,
): Promise<{ readonly port: number; close(): Promise<void> }> {
  const server = createServer((socket) => {
    // A tool that is killed does not say goodbye.
    socket.on("error", () => undefined);
    createInterface({ input: socket }).once("line", (id) => {
      runs.set(id, (runs.get(id) ?? 0) + 1);
      socket.end("\n");
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    port: (server.address() as AddressInfo).port,
    async close() {
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** Does it again and again, with pauses of up to twice that time, until the signal. */
async function repeat(
  everyMs: number,
  signal: AbortSignal,
  act: () => Promise<void>,
): Promise<void> {
  while (!signal.aborted) {
    await sleep(2 * Math.random() * everyMs, undefined, { signal }).catch(() => undefined);
    if (!signal.aborted) await act();
  }
}
