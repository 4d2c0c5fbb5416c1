/**
 * A worker that is killed leaves the containers of its calls running, until the next one with its
 * work directory starts.
 *
 * @module-tag full
 */
import { mkdir, readdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { startDevBroker } from "../../../harness/dev-broker/dev-broker.ts";
import { encodeRequest } from "../../../harness/messages.ts";
import { invokeTopic, responseTopic } from "../../../worker/protocol/topics.ts";
import { never } from "../../integration/sandbox/sandbox-host.ts";
import { DevClient } from "../../support/brokers/dev-client.ts";
import { daemons } from "../../support/containers/kept-containers.ts";
import { patience } from "../../support/patience.ts";
import {
  manifestText,
  namespace,
  reachableDirectory,
  workerEnvironment,
} from "../../support/workers/rig.ts";
import { WorkerProcess } from "../../support/workers/worker-process.ts";

const source = `
import time

def sleeps():
    open("output/ready", "w").close()
    time.sleep(86400)
`;

async function prepare(backend: string) {
  const base = await reachableDirectory();
  onTestFinished(() => rm(base, { recursive: true, force: true }));
  const [tools, manifestPath, profiles] = ["tools", "manifest.yaml", "profiles.yaml"].map((name) =>
    join(base, name),
  ) as [string, string, string];
  await mkdir(tools);
  await writeFile(join(tools, "sleeper.py"), source);
  const sleeps = { module: "sleeper", function: "sleeps", sandbox_profile: "contained" };
  await writeFile(manifestPath, manifestText({ sleeps }));
  const contained = { extends: "restrictive", backend };
  await writeFile(profiles, JSON.stringify({ version: 1, profiles: { contained } }));
  const broker = await startDevBroker();
  onTestFinished(() => broker[Symbol.asyncDispose]());
  const client = await DevClient.connect({ ...broker, name: "raw", patterns: [] }, never);
  onTestFinished(() => client[Symbol.asyncDispose]());
  const environment = {
    ...workerEnvironment(broker, base, manifestPath, tools),
    SANDBOX_PROFILES_FILE: profiles,
  };
  return { base, environment, client };
}

describe.each(["docker", "containerd"] as const)("a killed worker's container of %s", (backend) => {
  test("goes on, and is ended by the next worker with its work directory only", async (context) => {
    const { variables, owners } = await daemons[backend](context);
    const { base, environment, client } = await prepare(backend);
    const start = async (workIn: string): Promise<WorkerProcess> => {
      const more = { ...variables, SANDBOX_WORK_DIR: join(base, workIn) };
      const worker = new WorkerProcess({ ...environment, ...more });
      onTestFinished(() => worker[Symbol.asyncDispose]());
      await worker.says("worker.ready");
      return worker;
    };
    const killed = await start("work");
    // Of the trial.
    await vi.waitFor(async () => expect(await owners()).toBe(""), patience);
    const call = encodeRequest("call", "raw", { tool: "sleeps", args: {}, timeoutSeconds: 600 });
    const replyTo = responseTopic(namespace, "raw", "call");
    await client.publish(invokeTopic(namespace, "sleeps"), call, { replyTo }, never);
    const isReady = async () =>
      expect((await readdir(join(base, "work"), { recursive: true })).join("\n")).toContain(
        "/ready",
      );
    await vi.waitFor(isReady, patience);
    const [former = ""] = /worker-\w+/.exec(await owners()) ?? [];
    const isThere = async () => expect(await owners()).toContain(former);
    await isThere();
    await killed[Symbol.asyncDispose]();
    await start("elsewhere");
    await isThere();
    await start("work");
    expect(await owners()).not.toContain(former);
  });
});
