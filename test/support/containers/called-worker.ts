/**
 * A broker, a worker and an agent, for a container: tools connect to hosts, by each start and each
 * network. Prints what came of it, and what the same connections come to without a sandbox:
 * `node called-worker.ts TARGETS STARTS`, with lists in JSON of `[host, port]` and of start modes.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { connect, createServer } from "node:net";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { Agent } from "../../../harness/agent.ts";
import { startDevBroker } from "../../../harness/dev-broker/dev-broker.ts";
import { programEnvironment } from "../workers/program-environment.ts";
import {
  type RigTool,
  manifestText,
  namespace,
  reachableDirectory,
  workerEnvironment,
} from "../workers/rig.ts";
import { WorkerProcess } from "../workers/worker-process.ts";

/** Milliseconds for a connection to the broker, and for a start mode to be had. */
const patienceMs = 60_000;
const port = 80;
const main = fileURLToPath(new URL("../../../worker/main.ts", import.meta.url));

const program = `
import socket

def greet(targets):
    return {"lines": [answer_of(host, port) for host, port in targets]}

def answer_of(host, port):
    try:
        with socket.create_connection((host, port), timeout=10) as connection:
            return connection.recv(100).decode()
    except OSError as error:
        return type(error).__name__
`;

interface ExecutionFacts {
  readonly start: string;
  readonly network?: { readonly refusals: readonly object[] };
}

interface CheckReport {
  readonly sandboxes: {
    readonly bubblewrap: {
      readonly checks: readonly { readonly name: string; readonly state: string }[];
    };
  };
}

const networks = {
  list: { allow: [{ host: "api.example.com", ports: [port] }] },
  public: "public",
} as const;

const [targetsText = "[]", startsText = "[]"] = process.argv.slice(2);
const targets = JSON.parse(targetsText) as readonly (readonly [string, number])[];
const starts = JSON.parse(startsText) as readonly ("cold" | "pool" | "template")[];

const server = createServer((socket) => void socket.end("greeting"));
server.listen(port, "0.0.0.0");
await once(server, "listening");
server.unref();

const base = await reachableDirectory();
const toolsDir = join(base, "tools");
await mkdir(toolsDir);
await writeFile(join(toolsDir, "greeting.py"), program);
const tools = Object.entries(networks).flatMap(([name, network]) =>
  starts.map((start) => ({ tool: `${name}_${start}`, name, network, start })),
);
const manifestPath = join(base, "manifest.yaml");
const entries = tools.map(({ tool, network, start }): [string, RigTool] => [
  tool,
  { module: "greeting", function: "greet", network, start, warm: { min: 1 } },
]);
await writeFile(manifestPath, manifestText(Object.fromEntries(entries)));

await using broker = await startDevBroker();
const environment = {
  ...workerEnvironment(broker, base, manifestPath, toolsDir),
  WARM_MAX_MEMORY_MB: "1024",
};
const check = await egressCheck();
await using worker = new WorkerProcess(environment);
await worker.says("worker.ready");
await using agent = await Agent.connect(
  { host: broker.host, port: broker.port, namespace },
  AbortSignal.timeout(patienceMs),
);

const calls = [];
for (const { tool, name, start } of tools)
  calls.push({ network: name, start, ...(await callBy(tool, start)) });
const status = await readFile("/proc/self/status", "utf8");
process.stdout.write(
  JSON.stringify({
    uid: process.getuid?.(),
    capabilities: /^CapBnd:\s*(\w+)$/m.exec(status)?.[1],
    check,
    withoutSandbox: await Promise.all(targets.map(answerOf)),
    calls,
  }),
);

/** The state of the check `egress` of `--check`. */
async function egressCheck(): Promise<string | undefined> {
  const { stdout } = spawn(process.execPath, [main, "--check"], {
    env: { ...programEnvironment(), ...environment },
    stdio: ["ignore", "pipe", "ignore"],
  });
  const report = JSON.parse(await text(stdout)) as CheckReport;
  return report.sandboxes.bubblewrap.checks.find(({ name }) => name === "egress")?.state;
}

/** Calls until the call has the start: the sandboxes that wait are made beside the calls. */
async function callBy(tool: string, start: string): Promise<object> {
  const untilMs = Date.now() + patienceMs;
  for (;;) {
    const call = { tool, args: { targets }, userId: "user", sessionId: "session" };
    const answer = await agent.call({ ...call, timeoutSeconds: 30 });
    if (answer.kind === "error") return { code: answer.code, message: answer.message };
    if (answer.kind !== "success") return answer;
    const { execution } = answer.response["result"] as unknown as {
      execution: ExecutionFacts;
    };
    if (execution.start === start)
      return { lines: answer.toolResult["lines"], refusals: execution.network?.refusals };
    if (Date.now() > untilMs) throw new Error(`${tool} had the start ${execution.start} until now`);
  }
}

async function answerOf([host, toPort]: readonly [string, number]): Promise<string> {
  return await text(connect(toPort, host)).catch(String);
}
