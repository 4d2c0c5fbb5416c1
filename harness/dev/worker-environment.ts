/**
 * The environment of the worker of `harness dev`.
 */
import { join } from "node:path";
import type { Environment } from "../../worker/config/config.ts";
import type { DevBroker } from "../dev-broker/dev-broker.ts";
import {
  exampleExecutableDir,
  exampleManifest,
  exampleNodeDir,
  examplePythonDir,
} from "../package.ts";
import { packageSettings } from "../packages/variables.ts";
import type { Programs } from "../prerequisites.ts";
import type { ToolsLayout } from "../tools-layout.ts";
import { reachable } from "../worker/worker-command.ts";

/** Seconds that running calls get when the worker is to start anew, unless the environment says. */
const drainSeconds = 5;

/**
 * The worker gets our broker, whichever others the environment names, by themselves or by files.
 */
const withoutOtherBrokers: Environment = Object.fromEntries(
  ["AMQP_URL", "SOLACE_HOST", "SOLACE_BROKER_URL"].flatMap((name) => [
    [name, ""],
    [`${name}_FILE`, ""],
  ]),
);

/** What the worker's surroundings are. */
export interface Surroundings {
  /** Undefined for what the environment says, or the examples. */
  readonly layout: ToolsLayout | undefined;
  readonly namespace: string;
  readonly broker: DevBroker;
  readonly programs: Programs;
  /** A directory that sandboxes can reach, removed in the end. */
  readonly home: string;
}

/** Our own environment with everything in it that a worker needs. */
export function workerEnvironment(
  own: Environment,
  { layout, namespace, broker, programs, home }: Surroundings,
): Environment {
  const given = Object.fromEntries(Object.entries(own).filter(([, value]) => value !== ""));
  return {
    MANIFEST_PATH: exampleManifest,
    TOOLS_PYTHON_DIR: examplePythonDir,
    TOOLS_NODE_DIR: exampleNodeDir,
    TOOLS_EXECUTABLE_DIR: exampleExecutableDir,
    SANDBOX_BWRAP_BIN: programs.bwrapBin,
    SANDBOX_PYTHON_BIN: programs.pythonBin,
    SANDBOX_WORK_DIR: join(home, "work"),
    ARTIFACT_SERVICE_TYPE: "filesystem",
    ARTIFACT_BASE_PATH: join(home, "artifacts"),
    HEALTH_PORT: "0",
    DRAIN_TIMEOUT_SECONDS: String(drainSeconds),
    ...given,
    ...packageSettings(own),
    TOOL_LOGS: "caller",
    ...(layout !== undefined && {
      MANIFEST_PATH: layout.manifestPath,
      TOOLS_PYTHON_DIR: layout.pythonDir,
      TOOLS_NODE_DIR: layout.nodeDir,
      TOOLS_EXECUTABLE_DIR: layout.executableDir,
    }),
    SAM_NAMESPACE: namespace,
    ...withoutOtherBrokers,
    DEV_BROKER_HOST: reachable(broker.host),
    DEV_BROKER_PORT: String(broker.port),
    // A worker whose supervisor was killed loses its broker with it, and gives up within seconds.
    CONNECT_RETRIES: "5",
    CONNECT_RETRY_DELAY_MS: "1000",
  };
}
