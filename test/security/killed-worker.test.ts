/**
 * A worker that is killed leaves no tool running, at whatever step of a call it dies.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFile, readdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, test, vi } from "vitest";
import { Agent } from "../../harness/agent.ts";
import { startDevBroker } from "../../harness/dev-broker.ts";
import { manifestText, namespace, reachableDirectory, workerEnvironment } from "../support/rig.ts";
import { WorkerProcess } from "../support/worker-process.ts";

const fixtureTools = new URL("../fixtures/tools/", import.meta.url).pathname;
/** A host user of this test's own, by which its sandboxes are told from all others. */
const sandboxUid = 61_000 + (process.pid % 1_000);

/** Processes of a user, but zombies, with their programs. */
async function processesOf(uid: number) {
  const pids = (await readdir("/proc")).filter((name) => /^\d+$/.test(name));
  const processes = await Promise.all(
    pids.map(async (pid) => {
      const status = await readFile(`/proc/${pid}/status`, "utf8").catch(() => "");
      const isTheirs = new RegExp(`^Uid:\\s+${uid}\\b`, "m").test(status);
      if (!isTheirs || /^State:\s+Z/m.test(status)) return [];
      return [{ pid: Number(pid), program: /^Name:\s+(.*)$/m.exec(status)?.[1] }];
    }),
  );
  return processes.flat();
}

/** Those that are more than bubblewrap waiting to set up a sandbox. */
async function toolsOf(uid: number) {
  return (await processesOf(uid)).filter(({ program }) => program !== "bwrap");
}

test("no tool goes on when its worker is killed, from the first milliseconds of a call on", async (context) => {
  if (process.getuid?.() !== 0) context.skip("needs root to tell its sandboxes by their user");
  const base = await reachableDirectory();
  await using owned = new AsyncDisposableStack();
  owned.defer(() => rm(base, { recursive: true, force: true }));
  owned.defer(async () => {
    // What bubblewrap leaves is this test's to remove.
    const pids = (await processesOf(sandboxUid)).map(({ pid }) => String(pid));
    if (pids.length > 0) await once(spawn("kill", ["-KILL", ...pids]), "close");
  });
  const broker = owned.use(await startDevBroker());
  const manifestPath = join(base, "manifest.yaml");
  await writeFile(manifestPath, manifestText({ ignores_term: { function: "ignores_term" } }));
  const environment = {
    ...workerEnvironment(broker, base, manifestPath, fixtureTools),
    SANDBOX_UID: String(sandboxUid),
  };
  const agent = owned.use(
    await Agent.connect(
      { host: broker.host, port: broker.port, namespace },
      AbortSignal.timeout(5_000),
    ),
  );
  for (const delayMs of [0, 1, 2, 3, 4, 6, 8, 12, 20]) {
    await using worker = new WorkerProcess(environment);
    await worker.says("worker ready");
    void agent.call({ tool: "ignores_term", timeoutSeconds: 60 }).catch(() => undefined);
    await worker.says("invocation received");
    // Spreads the kills over the set-up of the sandbox; nothing is waited for.
    await sleep(delayMs);
    worker.child.kill("SIGKILL");
    await worker.exited;
    await vi.waitFor(async () => expect(await toolsOf(sandboxUid)).toEqual([]), {
      timeout: 10_000,
      interval: 100,
    });
  }
});
