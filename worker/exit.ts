/**
 * Exit codes, documented in docs/operate.md, and the message of a failure.
 */
import { constants } from "node:os";
import { StoreError } from "./artifacts/store.ts";
import { BrokerError } from "./broker/broker.ts";
import { ConfigError } from "./config/config.ts";
import { ManifestError } from "./manifest/manifest.ts";
import { ProfilesError } from "./sandbox/profiles-file.ts";
import { SandboxError } from "./sandbox/sandbox.ts";

/** Exit codes of sysexits(3); signals as in a shell. */
export const exit = {
  ok: 0,
  /** The doctor found a failed check. */
  unfit: 1,
  usage: 64,
  unavailable: 69,
  software: 70,
  config: 78,
  signalBase: 128,
} as const;

/** Signals for an orderly stop. */
export type StoppingSignal = "SIGTERM" | "SIGINT";

export class StoppedError extends Error {
  readonly signal: StoppingSignal;

  constructor(signal: StoppingSignal) {
    super(`stopped by ${signal}`);
    this.signal = signal;
  }
}

/** Exit code for a failure. */
export function exitCodeOf(error: unknown): number {
  if (error instanceof StoppedError) return exit.signalBase + constants.signals[error.signal];
  if (error instanceof BrokerError) return error.transient ? exit.unavailable : exit.config;
  const isConfiguration = [
    ConfigError,
    ManifestError,
    ProfilesError,
    SandboxError,
    StoreError,
  ].some((kind) => error instanceof kind);
  return isConfiguration ? exit.config : exit.software;
}

const variableOf: Readonly<Record<string, string>> = {
  allowUnsafe: "SANDBOX_ALLOW_UNSAFE",
  minimum: "SANDBOX_MINIMUM",
  workDir: "SANDBOX_WORK_DIR",
  bwrapBin: "SANDBOX_BWRAP_BIN",
  runscBin: "SANDBOX_RUNSC_BIN",
  containerd: "SANDBOX_CONTAINERD_ADDRESS",
  kataRuntime: "SANDBOX_KATA_RUNTIME",
  dockerSocket: "DOCKER_SOCKET",
  pythonBin: "SANDBOX_PYTHON_BIN",
  nodeBin: "SANDBOX_NODE_BIN",
  toolsPythonDir: "TOOLS_PYTHON_DIR",
  toolsNodeDir: "TOOLS_NODE_DIR",
};

/** The variable to check, where the message names neither a variable nor a line of a file. */
function variableFor(error: Error): string | undefined {
  if (error instanceof SandboxError) return error.setting && variableOf[error.setting];
  if (error instanceof StoreError) return "ARTIFACT_BASE_PATH";
  const isManifest = error instanceof ManifestError;
  if (!isManifest && !(error instanceof ProfilesError)) return undefined;
  if (error.problems.some(({ line }) => line !== undefined)) return undefined;
  return isManifest ? "MANIFEST_PATH" : "SANDBOX_PROFILES_FILE";
}

/** The messages of an error and its causes; the stack of an unexpected error. */
export function explain(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (exitCodeOf(error) === exit.software) return error.stack ?? error.message;
  const variable = variableFor(error);
  const messages = [variable === undefined ? error.message : `${variable}: ${error.message}`];
  for (let { cause } = error; cause instanceof Error; cause = cause.cause)
    messages.push(cause.message);
  return messages.join("\n  because: ");
}
