/**
 * What it costs to describe a tool of each language, one time after the other in cold sandboxes:
 * `node bench/descriptions.ts [COUNT]`.
 */
import { readFileSync } from "node:fs";
import { chmod, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { performance } from "node:perf_hooks";
import { readConfig } from "../worker/config/config.ts";
import { describeTool } from "../worker/descriptions/describe.ts";
import { openFoundation } from "../worker/wiring/foundation.ts";
import { createHost } from "../worker/wiring/host.ts";
import { builtInProfiles } from "../worker/sandbox/profile.ts";
import { createLogger } from "../worker/telemetry/logger.ts";

const examples = join(import.meta.dirname, "../examples/tools");
/** One of each language. */
const tools = ["convert_temperature", "add_business_days"];
const count = Number(process.argv[2] ?? 20);

/** Milliseconds of processor time of this process and the children that have ended. */
function processorMs(): number {
  const fields = readFileSync("/proc/self/stat", "utf8").split(") ")[1]?.split(" ") ?? [];
  const ticks = fields.slice(11, 15).reduce((sum, field) => sum + Number(field), 0);
  return ticks * 10;
}

const workDir = await mkdtemp(join(tmpdir(), "str-bench-"));
// Sandboxes have a user of their own.
await chmod(workDir, 0o755);
const environment = {
  SAM_NAMESPACE: "bench",
  DEV_BROKER_HOST: "none",
  MANIFEST_PATH: join(examples, "manifest.yaml"),
  TOOLS_PYTHON_DIR: join(examples, "python"),
  TOOLS_NODE_DIR: join(examples, "node"),
  SANDBOX_WORK_DIR: workDir,
  ARTIFACT_SERVICE_TYPE: "memory",
  PACKAGE_POLICY: "check",
};

try {
  const never = new AbortController().signal;
  const host = createHost(createLogger("error", process.stderr.fd), environment);
  await using foundation = await openFoundation(readConfig(environment), host, never);
  const profile = builtInProfiles.get("standard");
  for (const name of tools) {
    const tool = foundation.catalog.resolve(name);
    if (tool === undefined || profile === undefined) throw new Error(`there is no tool ${name}`);
    const durations: number[] = [];
    const startProcessorMs = processorMs();
    while (durations.length < count) {
      const startMs = performance.now();
      await describeTool(foundation, { tool, profile }, never);
      durations.push(performance.now() - startMs);
    }
    const [median = NaN] = durations.sort((a, b) => a - b).slice(Math.floor(count / 2));
    const mean = (processorMs() - startProcessorMs) / count;
    const times = `${median.toFixed(0)} ms, the median of ${count}; ${mean.toFixed(0)} ms processor`;
    console.log(`${name} (${tool.runtime}): ${times}`);
  }
} finally {
  await rm(workDir, { recursive: true, force: true });
}
