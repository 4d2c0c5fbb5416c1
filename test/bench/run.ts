/**
 * `npm run bench`: what a call costs, next to what its parts cost, all in one run.
 *
 * Rounds of all rows are interleaved, so that a busy moment of the machine hits each of them; only ratios travel from
 * one machine to another.
 */
import { chmod, mkdtemp, rm } from "node:fs/promises";
import { cpus, release } from "node:os";
import { join } from "node:path";
import { Agent } from "../../harness/agent.ts";
import { startDevBroker } from "../../harness/dev-broker.ts";
import { invokeTopic } from "../../worker/protocol/topics.ts";
import { bwrapOptions } from "../../worker/sandbox/bubblewrap/argv.ts";
import { encodeArgs } from "../../worker/sandbox/bubblewrap/process.ts";
import { builtInProfiles } from "../../worker/sandbox/profile.ts";
import { startSubprocess } from "../../worker/sandbox/subprocess.ts";
import { namespace, workerEnvironment } from "../support/rig.ts";
import { WorkerProcess } from "../support/worker-process.ts";

const warmUpRounds = 5;
const rounds = Number(process.argv[2] ?? 100);
const root = new URL("../../", import.meta.url).pathname;
const uid = process.getuid?.() === 0 ? 60_001 : undefined;

interface Row {
  readonly name: string;
  run(): Promise<unknown>;
}

async function runToEnd(
  file: string,
  argv: readonly string[],
  inputs: readonly string[] = [],
): Promise<void> {
  const child = await startSubprocess({ file, argv, env: {}, uid, inputs });
  const { exitCode } = await child.exited;
  await child.closed;
  if (exitCode !== 0) throw new Error(`${file} failed: ${child.output().stderr.text}`);
}

/** bubblewrap with the standard profile's options. */
function bwrap(workDir: string, command: readonly string[]): Promise<void> {
  const profile = builtInProfiles.get("standard");
  if (profile === undefined) throw new Error("no standard profile");
  const options = bwrapOptions({
    profile,
    proc: "fresh",
    systemDirectories: ["bin", "sbin", "lib", "lib64"].map((name) => ({
      path: `/${name}`,
      linkTarget: `usr/${name}`,
    })),
    workDir,
    mounts: [],
    environment: new Map([["PATH", "/usr/bin"]]),
  });
  return runToEnd("/usr/bin/bwrap", ["--args", "3", "--", ...command], [encodeArgs(options)]);
}

function quantile(sorted: readonly number[], q: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * q))] ?? Number.NaN;
}

async function measure(rows: readonly Row[]): Promise<ReadonlyMap<string, readonly number[]>> {
  const times = new Map<string, number[]>(rows.map((row) => [row.name, []]));
  for (let round = -warmUpRounds; round < rounds; round++) {
    for (const row of rows) {
      const startMs = performance.now();
      await row.run();
      if (round >= 0) times.get(row.name)?.push(performance.now() - startMs);
    }
  }
  return new Map([...times].map(([name, list]) => [name, list.toSorted((a, b) => a - b)]));
}

const base = await mkdtemp("/var/tmp/str-bench-");
await using owned = new AsyncDisposableStack();
owned.defer(() => rm(base, { recursive: true, force: true }));
await chmod(base, 0o777);
const broker = owned.use(await startDevBroker());
const environment = {
  ...workerEnvironment(
    broker,
    base,
    join(root, "examples/tools/manifest.yaml"),
    join(root, "examples/tools/python"),
  ),
  LOG_LEVEL: "warn",
};
owned.use(new WorkerProcess(environment));
await broker.whenSubscribed(invokeTopic(namespace, "echo_tool"), AbortSignal.timeout(30_000));
const agent = owned.use(
  await Agent.connect(
    { host: broker.host, port: broker.port, namespace },
    AbortSignal.timeout(5_000),
  ),
);

const bare = "bwrap + python3 -c pass";
const endToEnd = "echo_tool, end to end";
const rows: readonly Row[] = [
  { name: "spawn /bin/true", run: () => runToEnd("/bin/true", []) },
  { name: "bwrap + true", run: () => bwrap(base, ["/usr/bin/true"]) },
  { name: bare, run: () => bwrap(base, ["/usr/bin/python3", "-c", "pass"]) },
  {
    name: endToEnd,
    run: async () => {
      const result = await agent.call({
        tool: "echo_tool",
        args: { message: "x" },
        timeoutSeconds: 30,
      });
      if (result.kind !== "success") throw new Error(JSON.stringify(result));
    },
  },
];

const times = await measure(rows);
const median = (name: string): number => quantile(times.get(name) ?? [], 0.5);
console.log(
  `Node ${process.version}, Linux ${release()}, ${cpus().length} cores, ${rounds} rounds, milliseconds\n`,
);
console.log("| what | median | p90 | p99 | x bare sandboxed Python |");
console.log("|---|---:|---:|---:|---:|");
for (const [name, sorted] of times) {
  const numbers = [0.5, 0.9, 0.99].map((q) => quantile(sorted, q).toFixed(1));
  console.log(`| ${name} | ${numbers.join(" | ")} | ${(median(name) / median(bare)).toFixed(2)} |`);
}
