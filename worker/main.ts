/**
 * The process's edge: environment, command line, signals, exit code.
 */
import { readFileSync } from "node:fs";
import { constants } from "node:os";
import { type Host, createHost } from "./app.ts";
import { BrokerError } from "./broker/broker.ts";
import { StoreError } from "./artifacts/store.ts";
import { check } from "./check.ts";
import {
  type Config,
  ConfigError,
  type Environment,
  readConfig,
  readSandboxConfig,
} from "./config.ts";
import type { DoctorChoice } from "./doctor.ts";
import { standBehindInit } from "./init.ts";
import { ManifestError } from "./manifest/manifest.ts";
import { ProfilesError } from "./sandbox/profiles-file.ts";
import { SandboxError, type SandboxSetting } from "./sandbox/sandbox.ts";
import { closeInheritedDescriptors } from "./support/inherited-descriptors.ts";
import { createSignalFilter } from "./support/signal-filter.ts";
import { createLogger } from "./telemetry/logger.ts";
import { describeVariables } from "./variables.ts";
import { Worker } from "./worker.ts";

/** Exit codes of sysexits(3), and of a shell for a signal. */
const exit = {
  ok: 0,
  /** The doctor found something that should hold and does not. */
  unfit: 1,
  usage: 64,
  unavailable: 69,
  software: 70,
  config: 78,
  signalBase: 128,
} as const;

/** Descriptors: the log is the worker's output, but only a companion to a check's. */
const [stdout, stderr] = [1, 2];

const usage = `Usage: str-worker [--check | --help | --version]
       str-worker doctor [--json] [--attack [--profile NAME]]

Runs tools for agents. Everything is configured by environment variables.

  --check    validate configuration, manifest, sandbox and store, print what was found, exit
  --help     print this text
  --version  print the version

  doctor            say what this host allows sandboxes, and how to give what is missing; needs
                    no other variables than those called SANDBOX_...
  --json            for machines
  --attack          run hostile tools in this host's sandboxes instead, and say what was held
  --profile NAME    under this profile only

Example:
  SAM_NAMESPACE=ed_test DEV_BROKER_HOST=127.0.0.1 MANIFEST_PATH=/tools/manifest.yaml str-worker

Variables:
${describeVariables()
  .map(
    ({ name, defaultText, description }) =>
      `  ${name.padEnd(25)} ${description}${defaultText === undefined ? "" : ` [${defaultText}]`}`,
  )
  .join("\n")}
`;

async function main(argv: readonly string[]): Promise<number> {
  standBehindInit(process.env);
  const [option, ...rest] = argv;
  if (option === "doctor") return runDoctor(rest);
  if (rest.length > 0) return refuseUsage(rest.join(" "));
  switch (option) {
    case "--help":
      process.stdout.write(usage);
      return exit.ok;
    case "--version":
      process.stdout.write(`${readVersion()}\n`);
      return exit.ok;
    case "--check":
      return withConfig(readConfig, runCheck, stderr);
    case undefined:
      return withConfig(readConfig, runWorker, stdout);
    default:
      return refuseUsage(option);
  }
}

function refuseUsage(argument: string): number {
  process.stderr.write(`str-worker: unknown argument ${argument}\n\n${usage}`);
  return exit.usage;
}

async function withConfig(
  read: (environment: Environment) => Config,
  run: (config: Config, host: Host) => Promise<number>,
  logDescriptor: number,
): Promise<number> {
  try {
    const config = read(process.env);
    closeInheritedDescriptors();
    const host = createHost(createLogger(config.logLevel, logDescriptor), process.env);
    return await run(config, host);
  } catch (error) {
    process.stderr.write(`str-worker: ${explain(error)}\n`);
    return exitCodeOf(error);
  }
}

async function runCheck(config: Config, host: Host): Promise<number> {
  process.stdout.write(`${await check(config, host, new AbortController().signal)}\n`);
  return exit.ok;
}

async function runDoctor(options: readonly string[]): Promise<number> {
  const choice = readDoctorChoice(options);
  if (typeof choice === "string") return refuseUsage(choice);
  const consult = async (config: Config, host: Host): Promise<number> => {
    const stopped = new AbortController();
    for (const signal of ["SIGTERM", "SIGINT"] as const)
      process.once(signal, () => stopped.abort(new StoppedError(signal)));
    // Who does not ask for it does not load the attacks.
    const { consultDoctor } = await import("./doctor.ts");
    const { text, isGood } = await consultDoctor(config, host, choice, stopped.signal);
    process.stdout.write(`${text}\n`);
    return isGood ? exit.ok : exit.unfit;
  };
  return withConfig(readSandboxConfig, consult, stderr);
}

/** What is asked for, or the argument that cannot be understood. */
function readDoctorChoice(options: readonly string[]): DoctorChoice | string {
  let [isJson, isAttack] = [false, false];
  let profile: string | undefined;
  const rest = options.values();
  for (const option of rest) {
    switch (option) {
      case "--json":
        isJson = true;
        break;
      case "--attack":
        isAttack = true;
        break;
      case "--profile":
        profile = rest.next().value;
        if (profile === undefined) return "--profile without a name";
        break;
      default:
        return option;
    }
  }
  if (profile !== undefined && !isAttack) return "--profile without --attack";
  return { isJson, isAttack, profile, screen: process.stderr };
}

/** A first SIGTERM or SIGINT drains, a second one stops at once. */
async function runWorker(config: Config, host: Host): Promise<number> {
  const { log } = host;
  await using worker = new Worker(config, host);
  const [first, second] = [signalled(), signalled()];
  const starting = new AbortController();
  const isNews = createSignalFilter(host.clock);
  for (const signal of ["SIGTERM", "SIGINT"] as const) {
    process.on(signal, () => {
      if (!isNews(signal)) return;
      if (starting.signal.aborted) second.resolve(signal);
      starting.abort(new Error(`stopped by ${signal}`));
      first.resolve(signal);
    });
  }

  try {
    await worker.start(starting.signal);
  } catch (error) {
    if (starting.signal.aborted) return exit.ok;
    throw error;
  }
  const cause = await Promise.race([
    first.promise.then(() => undefined),
    worker.failed.then((error) => ({ error })),
  ]);
  if (cause !== undefined) {
    log.fatal({ err: cause.error }, "worker cannot go on");
    // Also what the broker holds for this worker already is answered.
    await worker.drain(0);
    return exitCodeOf(cause.error);
  }
  log.info(
    { drainTimeoutSeconds: config.drainTimeoutSeconds },
    "draining; a second signal stops at once",
  );
  const drained = worker.drain(config.drainTimeoutSeconds * 1000);
  const forced = await Promise.race([drained, second.promise]);
  if (typeof forced === "string") {
    log.warn({ signal: forced }, "stopped at once");
    worker.hurry();
    return exit.signalBase + constants.signals[forced];
  }
  log.info(forced, "drained");
  return exit.ok;
}

function signalled(): PromiseWithResolvers<NodeJS.Signals> {
  return Promise.withResolvers();
}

/** A signal came. */
class StoppedError extends Error {
  readonly signal: "SIGTERM" | "SIGINT";

  constructor(signal: "SIGTERM" | "SIGINT") {
    super(`stopped by ${signal}`);
    this.signal = signal;
  }
}

function exitCodeOf(error: unknown): number {
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

const variableOf: Readonly<Record<SandboxSetting, string>> = {
  allowUnsafe: "SANDBOX_ALLOW_UNSAFE",
  minimum: "SANDBOX_MINIMUM",
  workDir: "SANDBOX_WORK_DIR",
  bwrapBin: "SANDBOX_BWRAP_BIN",
  pythonBin: "SANDBOX_PYTHON_BIN",
  nodeBin: "SANDBOX_NODE_BIN",
  toolsPythonDir: "TOOLS_PYTHON_DIR",
  toolsNodeDir: "TOOLS_NODE_DIR",
};

/** The variable to look at, where the message names none and no place in a file either. */
function variableFor(error: Error): string | undefined {
  if (error instanceof SandboxError) return error.setting && variableOf[error.setting];
  if (error instanceof StoreError) return "ARTIFACT_BASE_PATH";
  const isManifest = error instanceof ManifestError;
  if (!isManifest && !(error instanceof ProfilesError)) return undefined;
  if (error.problems.some(({ line }) => line !== undefined)) return undefined;
  return isManifest ? "MANIFEST_PATH" : "SANDBOX_PROFILES_FILE";
}

/** The message and the messages of its causes; a stack only for what nobody foresaw. */
function explain(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (exitCodeOf(error) === exit.software) return error.stack ?? error.message;
  const variable = variableFor(error);
  const messages = [variable === undefined ? error.message : `${variable}: ${error.message}`];
  for (let { cause } = error; cause instanceof Error; cause = cause.cause)
    messages.push(cause.message);
  return messages.join("\n  because: ");
}

function readVersion(): string {
  const path = import.meta.url.endsWith(".ts") ? "../package.json" : "../../package.json";
  const { version } = JSON.parse(readFileSync(new URL(path, import.meta.url), "utf8")) as {
    version: string;
  };
  return version;
}

process.exitCode = await main(process.argv.slice(2));
