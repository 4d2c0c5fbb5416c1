/**
 * Where the workers of a benchmark run, and what they are configured with.
 */
import { rmSync } from "node:fs";
import { chmod, mkdir, mkdtemp, rm, statfs, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { BrokerVariables } from "./brokers.ts";
import { inFlight } from "./measure.ts";
import { type BenchTool, manifestOf, toolsDir } from "./tools.ts";

/** Host uid of sandboxes when this runs as root, as the worker's default. */
export const sandboxUid = process.getuid?.() === 0 ? 60_001 : undefined;

/** Seconds that a call may take. */
export const callTimeoutSeconds = 30;

/**
 * Enough for all that is to wait: what is asked is how long calls take, not how few sandboxes can
 * wait.
 */
const maxWarmMb = 2_048;

/** Milliseconds within which a worker, or what stands for one, must be up. */
export const startTimeoutMs = 60_000;

/** Where the calls of a benchmark are. */
export const namespace = "bench";

/** Where no broker is. */
export const noBroker: BrokerVariables = { DEV_BROKER_HOST: "127.0.0.1", DEV_BROKER_PORT: "1" };

/**
 * Where a benchmark keeps its files, work directories among them: in memory, where there is room.
 */
const memoryDirectory = "/dev/shm";
/** A directory on a disk. */
export const diskDirectory = "/var/tmp";
/** Bytes that must be free in memory: a benchmark needs a tenth of that. */
const minMemoryBytes = 1024 ** 3;
const endSignals = ["SIGTERM", "SIGINT"] as const;
/** Attempts to remove a directory in which a worker still makes files. */
const signalledRemovals = 10;
/** TMPFS_MAGIC of linux/magic.h. */
const tmpfsType = 0x0102_1994;

/** A directory of a benchmark. */
export interface BenchDirectory extends AsyncDisposable {
  readonly path: string;
}

/** A directory that sandboxes can reach, and what it lies on, in words. The caller owns it. */
export async function makeBase(): Promise<BenchDirectory & { readonly kind: string }> {
  const isInMemory = await hasMemory();
  const directory = await makeDirectory(isInMemory ? memoryDirectory : diskDirectory);
  await chmod(directory.path, 0o777);
  return { ...directory, kind: `work directories ${isInMemory ? "in memory" : "on a disk"}` };
}

/**
 * A directory that is removed by its owner, or when SIGTERM or SIGINT ends this process: then by
 * attempts, since workers end meanwhile.
 */
export async function makeDirectory(parent: string): Promise<BenchDirectory> {
  const path = await mkdtemp(join(parent, "str-bench-"));
  const end = (signal: NodeJS.Signals): void => {
    rmSync(path, { recursive: true, force: true, maxRetries: signalledRemovals });
    forget();
    // The last one has the signal end the process as it would have.
    if (process.listenerCount(signal) === 0) process.kill(process.pid, signal);
  };
  const forget = (): void => endSignals.forEach((signal) => void process.off(signal, end));
  for (const signal of endSignals) process.on(signal, end);
  return {
    path,
    [Symbol.asyncDispose]: async () => {
      forget();
      await rm(path, { recursive: true, force: true });
    },
  };
}

async function hasMemory(): Promise<boolean> {
  const found = await statfs(memoryDirectory).catch(() => undefined);
  return found?.type === tmpfsType && found.bavail * found.bsize >= minMemoryBytes;
}

/**
 * The environment of a worker that serves these tools, and `others` by their manifest entries, with
 * directories of its own below `base`. The artifact store is that of all: workers of a group share
 * it.
 */
export async function environmentOf(
  base: string,
  name: string,
  tools: readonly BenchTool[],
  broker: BrokerVariables,
  others: Readonly<Record<string, object>> = {},
): Promise<Record<string, string>> {
  const own = join(base, name);
  await mkdir(own, { mode: 0o777 });
  await chmod(own, 0o777);
  const manifestPath = join(own, "manifest.yaml");
  await writeFile(manifestPath, manifestOf(tools, others));
  return {
    ...broker,
    SAM_NAMESPACE: namespace,
    MANIFEST_PATH: manifestPath,
    TOOLS_PYTHON_DIR: join(toolsDir, "python"),
    TOOLS_NODE_DIR: join(toolsDir, "node"),
    SANDBOX_WORK_DIR: join(own, "work"),
    SANDBOX_MAX_CONCURRENT: String(inFlight),
    WARM_MAX_MEMORY_MB: String(maxWarmMb),
    ARTIFACT_SERVICE_TYPE: "filesystem",
    ARTIFACT_BASE_PATH: join(base, "artifacts"),
    HEALTH_PORT: "0",
    LOG_LEVEL: "warn",
  };
}
