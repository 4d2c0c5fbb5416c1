/**
 * A worker with tools of one language, on the system that runs this program: `node
 * foreign-worker.ts LANGUAGE SECONDS`. Prints what a call answers that starts cold, and two in
 * children of a template, as soon as there are children.
 */
import { chmod, cp, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Writable } from "node:stream";
import { Agent } from "../../../harness/agent.ts";
import { startDevBroker } from "../../../harness/dev-broker/dev-broker.ts";
import { readConfig } from "../../../worker/config/config.ts";
import { systemClock } from "../../../worker/support/clock.ts";
import { createLogger } from "../../../worker/telemetry/logger.ts";
import { createHost } from "../../../worker/wiring/host.ts";
import { Worker } from "../../../worker/worker.ts";
import { isCodeSettled } from "../workers/settled-code.ts";

const [language = "", seconds] = process.argv.slice(2);
const patience = AbortSignal.timeout(Number(seconds) * 1_000);
const pauseMs = 100;
const callSeconds = 120;

const namespace = "foreign";
const modules: Readonly<Record<string, string>> = {
  node: "native/looking.mjs",
  python: "native.looking",
};
const entry = { runtime: language, module: modules[language], function: "look" };
const children = 2;
const tools = {
  forked: { ...entry, start: "template", warm: { min: children, max: children } },
  cold: { ...entry, start: "cold" },
};

await using owned = new AsyncDisposableStack();
const base = await mkdtemp(join(tmpdir(), "str-foreign-"));
owned.defer(() => rm(base, { recursive: true, force: true }));
await chmod(base, 0o755);
const toolsDir = join(base, "tools");
await cp(join(import.meta.dirname, "../../fixtures"), toolsDir, { recursive: true });
const manifest = join(base, "manifest.yaml");
// JSON is YAML.
await writeFile(manifest, JSON.stringify({ version: 1, tools }));

const broker = owned.use(await startDevBroker());
const environment = {
  SAM_NAMESPACE: namespace,
  DEV_BROKER_HOST: broker.host,
  DEV_BROKER_PORT: String(broker.port),
  MANIFEST_PATH: manifest,
  TOOLS_PYTHON_DIR: toolsDir,
  TOOLS_NODE_DIR: toolsDir,
  TOOLS_DESCRIBED_BY: "manifest",
  SANDBOX_WORK_DIR: join(base, "work"),
  SANDBOX_MIN_FREE_DISK_MB: "1",
  PACKAGE_DIR: join(base, "environments"),
  ARTIFACT_SERVICE_TYPE: "filesystem",
  ARTIFACT_BASE_PATH: join(base, "artifacts"),
  HEALTH_PORT: "0",
};
const logLines: string[] = [];
const keep = new Writable({
  write(chunk: Buffer, _encoding, done) {
    logLines.push(...chunk.toString().split("\n"));
    process.stderr.write(chunk, done);
  },
});
const log = createLogger("debug", keep);
const worker = owned.use(new Worker(readConfig(environment), createHost(log, environment)));
await worker.start(patience);
const address = { host: broker.host, port: broker.port, namespace };
const agent = owned.use(await Agent.connect(address, patience));

await untilIdle();
const answers = {
  children: [await call("forked"), await call("forked")],
  cold: await call("cold"),
};
process.stdout.write(`${JSON.stringify(answers)}\n`);

async function untilIdle() {
  for (;;) {
    const [stats] = worker.starts?.stats ?? [];
    if (stats?.failure !== undefined) throw stats.failure.error;
    if (stats?.idle === children && isCodeSettled(logLines, language)) return;
    await systemClock.sleep(pauseMs, patience);
  }
}

async function call(tool: string) {
  const options = { signal: patience };
  const answer = await agent.call({ tool, timeoutSeconds: callSeconds }, options);
  if (answer.kind !== "success") throw new Error(JSON.stringify(answer));
  const { execution } = answer.response["result"] as { execution: { start: string } };
  return { start: execution.start, result: answer.toolResult };
}
