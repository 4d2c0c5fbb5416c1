/**
 * Formats the command line of a worker for the harness's broker.
 */
import { join } from "node:path";
import type { Environment } from "../../worker/config/config.ts";
import {
  exampleManifest,
  exampleNodeDir,
  examplePythonDir,
  workerCommandPath,
} from "../package.ts";
import { passableTemporaryDirectory } from "../temporary.ts";
import { quote, typedCommand } from "../options/typed-command.ts";

/** Settings that worker and harness share. */
export interface WorkerMatch {
  readonly namespace: string;
  readonly host: string;
  readonly port: number;
  readonly environment: Environment;
}

/** The worker reads these from its own environment; where ours has them, it needs the same. */
const sharedVariables = [
  "MANIFEST_PATH",
  "TOOLS_PYTHON_DIR",
  "TOOLS_NODE_DIR",
  "SANDBOX_WORK_DIR",
  "ARTIFACT_SERVICE_TYPE",
  "ARTIFACT_BASE_PATH",
  "ARTIFACT_SCOPE",
  "ARTIFACT_SCOPE_VALUE",
];

/** A POSIX shell command over several lines, ready to be pasted on this host. */
export async function workerCommand(match: WorkerMatch): Promise<string> {
  const variables = new Map<string, string>([
    ["SAM_NAMESPACE", match.namespace],
    ["DEV_BROKER_HOST", reachable(match.host)],
    ["DEV_BROKER_PORT", String(match.port)],
    ["MANIFEST_PATH", exampleManifest],
    ["TOOLS_PYTHON_DIR", examplePythonDir],
    ["TOOLS_NODE_DIR", exampleNodeDir],
  ]);
  const temporary = await passableTemporaryDirectory();
  if (temporary !== undefined) variables.set("SANDBOX_WORK_DIR", join(temporary, "str-work"));
  for (const name of sharedVariables) {
    const value = match.environment[name];
    if (value) variables.set(name, value);
  }
  const assignments = [...variables].map(([name, value]) => `  ${name}=${quote(value)} \\`);
  return [
    ...assignments,
    `  ${typedCommand("str-worker", workerCommandPath, match.environment)}`,
  ].join("\n");
}

/** Where to connect to a broker that listens on `host`, which may mean every interface. */
export function reachable(host: string): string {
  if (host === "0.0.0.0") return "127.0.0.1";
  return host === "::" ? "::1" : host;
}
