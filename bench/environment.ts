/**
 * Where the workers of a benchmark run, and what they are configured with.
 */
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
const diskDirectory = "/var/tmp";
/** Bytes that must be free in memory: a benchmark needs a tenth of that. */
const minMemoryBytes = 1024 ** 3;
/** TMPFS_MAGIC of linux/magic.h. */
const tmpfsType = 0x0102_1994;

/** A directory that sandboxes can reach, and what it lies on, in words. The caller owns it. */
export async function makeBase(): Promise<
  AsyncDisposable & { readonly path: string; readonly kind: string }
> {
  const isInMemory = await hasMemory();
  const path = await mkdtemp(join(isInMemory ? memoryDirectory : diskDirectory, "str-bench-"));
  await chmod(path, 0o777);
  return {
    path,
    kind: `work directories ${isInMemory ? "in memory" : "on a disk"}`,
    [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }),
  };
}

async function hasMemory(): Promise<boolean> {
  const found = await statfs(memoryDirectory).catch(() => undefined);
  return found?.type === tmpfsType && found.bavail * found.bsize >= minMemoryBytes;
}

/**
 * The environment of a worker that serves these tools, with directories of its own below `base`.
 * The artifact store is that of all: workers of a group share it.
 */
export async function environmentOf(
  base: string,
  name: string,
  tools: readonly BenchTool[],
  broker: BrokerVariables,
): Promise<Record<string, string>> {
  const own = join(base, name);
  await mkdir(own, { mode: 0o777 });
  await chmod(own, 0o777);
  const manifestPath = join(own, "manifest.yaml");
  await writeFile(manifestPath, manifestOf(tools));
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
