/**
 * Descriptions of tools as a worker makes them, without a broker.
 */
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { Writable } from "node:stream";
import { readConfig } from "../../../worker/config/config.ts";
import type { Descriptions } from "../../../worker/descriptions/descriptions.ts";
import type { ToolEntry } from "../../../worker/manifest/manifest.ts";
import { createLogger } from "../../../worker/telemetry/logger.ts";
import { wireDescriptions } from "../../../worker/wiring/discovery.ts";
import { openFoundation } from "../../../worker/wiring/foundation.ts";
import { createHost } from "../../../worker/wiring/host.ts";
import { reachableDirectory } from "../workers/rig.ts";
import { sharedPreparations } from "../workers/shared-preparations.ts";

/** Where a manifest and its tools are. */
export interface DescribingOptions {
  readonly manifestPath: string;
  readonly pythonDir: string;
  readonly nodeDir: string;
  readonly executableDir?: string;
  /** A new one unless given; its maker removes it. */
  readonly workDir?: string;
  /** Variables on top of these. */
  readonly environment?: Readonly<Record<string, string>>;
}

/** Descriptions of the tools of a manifest. */
export interface Describing extends AsyncDisposable {
  readonly descriptions: Descriptions;
  readonly tools: ReadonlyMap<string, ToolEntry>;
  readonly logLines: readonly string[];
}

/** Opens what describes the tools. The caller owns it. */
export async function openDescribing(options: DescribingOptions): Promise<Describing> {
  await using owned = new AsyncDisposableStack();
  let { workDir } = options;
  if (workDir === undefined) {
    const base = await reachableDirectory();
    owned.defer(() => rm(base, { recursive: true, force: true }));
    workDir = join(base, "work");
  }
  const config = readConfig({
    SAM_NAMESPACE: "described",
    DEV_BROKER_HOST: "none",
    MANIFEST_PATH: options.manifestPath,
    TOOLS_PYTHON_DIR: options.pythonDir,
    TOOLS_NODE_DIR: options.nodeDir,
    ...(options.executableDir !== undefined && { TOOLS_EXECUTABLE_DIR: options.executableDir }),
    SANDBOX_WORK_DIR: workDir,
    ARTIFACT_SERVICE_TYPE: "memory",
    ...options.environment,
  });
  const logLines: string[] = [];
  const lines = new Writable({
    write(chunk: Buffer, _encoding, done) {
      logLines.push(chunk.toString());
      done();
    },
  });
  const preparations = sharedPreparations;
  const host = { ...createHost(createLogger("debug", lines), {}), preparations };
  const signal = AbortSignal.timeout(30_000);
  const foundation = owned.use(await openFoundation(config, host, signal));
  const all = owned.move();
  return {
    descriptions: wireDescriptions(config, host, foundation),
    tools: foundation.catalog.manifest.tools,
    logLines,
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}
