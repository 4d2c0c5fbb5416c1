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
import { readDoctorOptions } from "./doctor/command-line.ts";
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
       str-worker doctor [--json] [--attack [--profile NAME]] [--help]

Runs tools for agents. Everything is configured by environment variables.

  --check    validate configuration, manifest, sandbox and store, print what was found, exit
  --help     print this text; -h does, too
  --version  print the version

  doctor            say what this host allows sandboxes, and how to give what is missing; reads
                    no other variables than LOG_LEVEL and those called SANDBOX_...
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
  if (argv.includes("--help") || argv.includes("-h")) {
    process.stdout.write(usage);
    return exit.ok;
  }
  if (option === "doctor") return runDoctor(rest);
  if (option !== undefined && rest.length > 0)
    return refuseUsage(`nothing comes after "${option}", and "${rest.join(" ")}" does`);
  switch (option) {
    case "--version":
      process.stdout.write(`${readVersion()}\n`);
      return exit.ok;
    case "--check":
      return withConfig(readConfig, runCheck, stderr);
    case undefined:
      return withConfig(readConfig, runWorker, stdout);
    default:
      return refuseUsage(`there is no argument "${option}"`);
  }
}

/** @param problem a sentence that names the argument */
function refuseUsage(problem: string): number {
  process.stderr.write(`str-worker: ${problem}; str-worker --help says what there is\n`);
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
  return untilStopped(host, async (signal) => {
    process.stdout.write(`${await check(config, host, signal)}\n`);
    return exit.ok;
  });
}

async function runDoctor(options: readonly string[]): Promise<number> {
  const asked = readDoctorOptions(options);
  if (typeof asked === "string") return refuseUsage(asked);
  const choice = { ...asked, screen: process.stderr };
  const consult = (config: Config, host: Host): Promise<number> =>
    untilStopped(host, async (signal) => {
      // Who does not ask for it does not load the attacks.
      const { consultDoctor } = await import("./doctor.ts");
      const { text, isGood } = await consultDoctor(config, host, choice, signal);
      process.stdout.write(`${text}\n`);
      return isGood ? exit.ok : exit.unfit;
    });
  return withConfig(readSandboxConfig, consult, stderr);
}

/** Runs what a first SIGTERM or SIGINT has given up and cleaned up; a second one ends the process at once. */
async function untilStopped(
  host: Host,
  run: (signal: AbortSignal) => Promise<number>,
): Promise<number> {
  const stopping = new AbortController();
  onSignals(host, (signal) => {
    const stopped = new StoppedError(signal);
    if (stopping.signal.aborted) process.exit(exitCodeOf(stopped));
    stopping.abort(stopped);
  });
  try {
    return await run(stopping.signal);
  } catch (error) {
    stopping.signal.throwIfAborted();
    throw error;
  }
}

/** Listens to SIGTERM and SIGINT, of which those that come twice count once. */
function onSignals({ clock }: Host, listener: (signal: StoppingSignal) => void): void {
  const isNews = createSignalFilter(clock);
  for (const signal of ["SIGTERM", "SIGINT"] as const)
    process.on(signal, () => {
      if (isNews(signal)) listener(signal);
    });
}

/** A first SIGTERM or SIGINT drains, a second one stops at once. */
async function runWorker(config: Config, host: Host): Promise<number> {
  const { log } = host;
  await using worker = new Worker(config, host);
  const [first, second] = [signalled(), signalled()];
  const starting = new AbortController();
  onSignals(host, (signal) => {
    if (starting.signal.aborted) second.resolve(signal);
    starting.abort(new StoppedError(signal));
    first.resolve(signal);
  });

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

type StoppingSignal = "SIGTERM" | "SIGINT";

/** A signal came. */
class StoppedError extends Error {
  readonly signal: StoppingSignal;

  constructor(signal: StoppingSignal) {
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
