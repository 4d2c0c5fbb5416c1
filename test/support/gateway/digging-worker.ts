/**
 * A worker with a tool that calls tools of other workers, on whatever broker a test hands it.
 */
import { mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Writable } from "node:stream";
import { onTestFinished } from "vitest";
import type { Broker } from "../../../worker/broker/broker.ts";
import { reconnecting } from "../../../worker/broker/reconnecting.ts";
import { readConfig } from "../../../worker/config/config.ts";
import { createLogger } from "../../../worker/telemetry/logger.ts";
import { createHost } from "../../../worker/wiring/host.ts";
import { Worker } from "../../../worker/worker.ts";
import { type RigTool, manifestText, reachableDirectory } from "../workers/rig.ts";
import { sharedPreparations } from "../workers/shared-preparations.ts";

const python = `
async def digs(ctx, level, to):
    try:
        below = await ctx.tools.call(to[0], {"level": level + 1, "to": [to[1], to[0]]})
    except Exception as error:
        return {"level": level, "code": error.code, "retryable": error.retryable}
    return dict(below)
`;

/** Calls the tools of `to` in turn, until one fails. */
export const digs = {
  module: "calls",
  function: "digs",
  allowed_callers: ["direct", "programmatic"],
} as const;

/** Starts a worker with one slot and one tool, which ends with the test. */
export async function startDiggingWorker(
  namespace: string,
  broker: Broker,
  name: string,
  tool: RigTool,
): Promise<Worker> {
  const base = await reachableDirectory();
  onTestFinished(() => rm(base, { recursive: true, force: true }));
  await mkdir(join(base, "tools"));
  await writeFile(join(base, "tools", "calls.py"), python);
  await writeFile(join(base, "manifest.yaml"), manifestText({ [name]: tool }));
  const environment = {
    SAM_NAMESPACE: namespace,
    DEV_BROKER_HOST: "not.used",
    WORKER_GROUP: name,
    MANIFEST_PATH: join(base, "manifest.yaml"),
    TOOLS_PYTHON_DIR: join(base, "tools"),
    TOOLS_DESCRIBED_BY: "manifest",
    SANDBOX_WORK_DIR: join(base, "work"),
    SANDBOX_MIN_FREE_DISK_MB: "1",
    SANDBOX_MAX_CONCURRENT: "1",
    SANDBOX_MAX_SUSPENDED: "16",
    WARM_MAX_MEMORY_MB: "0",
    HEALTH_PORT: "0",
  };
  const log = createLogger("debug", new Writable({ write: (_chunk, _encoding, done) => done() }));
  const session = reconnecting(broker, { maxAttempts: 1, backoff: { baseMs: 1, capMs: 1 }, log });
  const host = { ...createHost(log, environment), preparations: sharedPreparations };
  const worker = new Worker(readConfig(environment), host, { broker: session });
  onTestFinished(() => worker[Symbol.asyncDispose]());
  await worker.start(AbortSignal.timeout(30_000));
  return worker;
}
