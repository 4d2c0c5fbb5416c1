/**
 * What a worker process finds around it: a DevBroker, tools, and directories of its own, told by
 * its environment.
 */
import { chmod, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { Agent } from "../../../harness/agent.ts";
import { type DevBroker, startDevBroker } from "../../../harness/dev-broker/dev-broker.ts";
import {
  type RigOptions,
  fixtureTools,
  manifestText,
  namespace,
  reachableDirectory,
  workerEnvironment,
} from "./rig.ts";

export interface WorkerSurroundings {
  /** Every user can write there, so that a worker can run as any. */
  readonly base: string;
  readonly broker: DevBroker;
  readonly environment: Record<string, string>;
  /** Connects an agent, which the caller owns. */
  connectAgent(): Promise<Agent>;
}

/**
 * Prepares them for the workers of one test, or of each one when it is called in `beforeEach`; they
 * end with the test.
 */
export async function surroundWorker(tools: RigOptions["tools"]): Promise<WorkerSurroundings> {
  const base = await reachableDirectory();
  onTestFinished(() => rm(base, { recursive: true, force: true }));
  await chmod(base, 0o777);
  const broker = await startDevBroker();
  onTestFinished(() => broker[Symbol.asyncDispose]());
  const manifestPath = join(base, "manifest.yaml");
  await writeFile(manifestPath, manifestText(tools));
  const address = { host: broker.host, port: broker.port, namespace };
  return {
    base,
    broker,
    environment: workerEnvironment(broker, base, manifestPath, fixtureTools),
    connectAgent: () => Agent.connect(address, AbortSignal.timeout(30_000)),
  };
}
