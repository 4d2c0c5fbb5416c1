/**
 * A process that saves a file of so many bytes in the store of its environment, stages it for a
 * call, and collects it as the call's output. Prints the bytes that it held at most meanwhile, and
 * what it and its children read.
 *
 * usage: node --expose-gc transfer-process.ts BYTES DIRECTORY
 */
import { createReadStream, readFileSync, readdirSync } from "node:fs";
import { open, rename, stat } from "node:fs/promises";
import { join } from "node:path";
import { openStore } from "../../../worker/artifacts/open.ts";
import { readConfig } from "../../../worker/config/config.ts";
import { checkOutputs } from "../../../worker/invocation/steps/check-outputs.ts";
import { Outputs, saveOutputs } from "../../../worker/invocation/steps/collect.ts";
import { stageArtifacts } from "../../../worker/invocation/steps/stage.ts";
import { Transfers } from "../../../worker/invocation/steps/transfers.ts";
import type { Invocation } from "../../../worker/protocol/invocation.ts";
import { systemClock } from "../../../worker/support/clock.ts";
import { createLogger } from "../../../worker/telemetry/logger.ts";
import { newWorkDir } from "../../support/sandboxes/work-dir.ts";

const [sizeBytes, directory] = [Number(process.argv[2]), process.argv[3]!];
const chunkBytes = 1024 * 1024;

/** The most bytes of live buffers while `work` runs, beyond those before; and what was read. */
async function costs(work: () => Promise<unknown>) {
  const [before, readBefore] = [liveBytes(), readings()];
  let peak = before;
  let timer: NodeJS.Timeout | undefined;
  const sample = (): void => {
    const startMs = performance.now();
    peak = Math.max(peak, liveBytes());
    // A collection takes long on a busy machine; most of the time is for the work.
    timer = setTimeout(sample, 5 + 3 * (performance.now() - startMs));
  };
  sample();
  await work();
  clearTimeout(timer);
  const read = readings();
  return {
    heldBytes: peak - before,
    ownBytes: read.own.bytes - readBefore.own.bytes,
    childrenBytes: read.children.bytes - readBefore.children.bytes,
    childrenCalls: read.children.calls - readBefore.children.calls,
  };
}

/** What was read so far: by the threads of this process, and by its children that have ended. */
function readings() {
  const threads = readdirSync("/proc/self/task").map((id) => readingOf(`/proc/self/task/${id}`));
  const own = {
    bytes: threads.reduce((sum, { bytes }) => sum + bytes, 0),
    calls: threads.reduce((sum, { calls }) => sum + calls, 0),
  };
  // proc_pid_io(5): the process has its children's, its threads have not.
  const all = readingOf("/proc/self");
  return { own, children: { bytes: all.bytes - own.bytes, calls: all.calls - own.calls } };
}

function readingOf(directory: string): { readonly bytes: number; readonly calls: number } {
  const io = readFileSync(`${directory}/io`, "utf8");
  const number = (name: string): number => Number(new RegExp(`${name}: (\\d+)`).exec(io)?.[1]);
  return { bytes: number("rchar"), calls: number("syscr") };
}

function liveBytes(): number {
  globalThis.gc?.();
  return process.memoryUsage().arrayBuffers;
}

const path = join(directory, "large.bin");
{
  await using file = await open(path, "wx");
  const chunk = Buffer.alloc(chunkBytes, "content ");
  for (let written = 0; written < sizeBytes; written += chunkBytes) await file.write(chunk);
}
const { artifacts } = readConfig({ ...process.env, SAM_NAMESPACE: "ns", DEV_BROKER_HOST: "none" });
await using store = await openStore(artifacts.store);
const scope = { root: "ns", userId: "ann", sessionId: "web-1" };
const [never, transfers] = [new AbortController().signal, new Transfers()];
const source = { sizeBytes, open: () => createReadStream(path) };
await store.save(scope, "large.bin", source, { mimeType: "x/y" }, never);

await using workDir = await newWorkDir();
const bounds = { fileSizeBytes: sizeBytes, diskBytes: sizeBytes };
const limits = { maxBytes: sizeBytes, callMaxBytes: sizeBytes, maxOutputs: 1, ...bounds };
const invocation = {
  preloaded: new Map(),
  references: new Map([["input", { filename: "large.bin", version: 0 }]]),
} as Partial<Invocation> as Invocation;
const origin = { store, scope, limits, diskBytes: sizeBytes, transfers };
const staging = await costs(() => stageArtifacts(invocation, workDir, origin, never));

const input = join(workDir.path, "input/large.bin");
const stagedBytes = (await stat(input)).size;
await rename(input, join(workDir.path, "output/large.bin"));
const log = createLogger("silent", 1);
const limitMs = 600_000;
const collection = { store, scope, limits, transfers, clock: systemClock, log, limitMs };
await using outputs = new Outputs(workDir, limits.maxOutputs);
const checked = checkOutputs(await outputs.left(), new Map(), collection);
const saving = await costs(() => saveOutputs(checked, collection, never));
const saved = await store.stat(scope, { filename: "large.bin", version: 1 }, never);
console.log(JSON.stringify({ staging, saving, stagedBytes, savedBytes: saved.sizeBytes }));
