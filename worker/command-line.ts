/**
 * The command line of the worker: parses arguments, runs the command, returns the exit code.
 */
import type { Writable } from "node:stream";
import { check } from "./check.ts";
import {
  type Config,
  type Environment,
  readConfig,
  readPackagesConfig,
  readSandboxConfig,
} from "./config/config.ts";
import { doctorUsage, readDoctorOptions } from "./doctor/command-line.ts";
import { StoppedError, type StoppingSignal, exit, exitCodeOf, explain } from "./exit.ts";
import { createSignalFilter } from "./support/signal-filter.ts";
import type { FactsOf } from "./telemetry/events.ts";
import { logEvent } from "./telemetry/log-event.ts";
import { createLogger, logDestination } from "./telemetry/logger.ts";
import { describeVariables } from "./config/variables.ts";
import { type Host, type Preparations, createHost } from "./wiring/host.ts";
import { Worker } from "./worker.ts";

const usage = `Usage: str-worker [--check [--strict] | --prepare | --help | --version]
       str-worker doctor [--json] [--attack [--profile NAME] [--start KIND]] [--help]

Runs tools for agents. Everything is configured by environment variables.

  --check    validate configuration, manifest, sandbox and store, load each tool in its
             sandbox, print what was found, exit
  --strict   with --check: exit with 78 also for unknown variables, warnings of the manifest,
             tools that are not served or do not load, and problems with the access of others
             to the store
  --prepare  install the packages that tools of the manifest name, print where they are, exit;
             with 69 if some could not be installed. Reads no variables of brokers and stores
  --help     print this text; -h does, too
  --version  print the version

  doctor            say what this host allows sandboxes, and how to give what is missing; reads
                    no other variables than LOG_LEVEL, LOG_FORMAT and those called SANDBOX_...
  doctor --help     its arguments and exit codes

Example:
  SAM_NAMESPACE=ed_test DEV_BROKER_HOST=127.0.0.1 MANIFEST_PATH=/tools/manifest.yaml str-worker

Variables. For one that holds a secret NAME_FILE may name a file with it:
${describeVariables()
  .map(
    ({ name, defaultText, description }) =>
      `  ${name.padEnd(25)} ${description}${defaultText === undefined ? "" : ` [${defaultText}]`}`,
  )
  .join("\n")}
`;

/** A stream of the process, or a substitute. */
export type Output = Writable & { readonly isTTY?: boolean; readonly fd?: number };

/** The part of the process that commands use. */
export interface Context {
  readonly environment: Environment;
  readonly out: Output;
  readonly err: Output;
  /** See {@link Host}. */
  readonly preparations?: Preparations;
  /** Calls the listener at each SIGTERM and SIGINT. */
  onSignal(listener: (signal: StoppingSignal) => void): void;
  /** Ends the process immediately. */
  exitNow(code: number): void;
  /** Closes inherited descriptors that the process does not use. */
  closeInheritedDescriptors(): void;
}

/** Runs a command line without the program's name. Returns the exit code. Never throws. */
export async function run(argv: readonly string[], context: Context): Promise<number> {
  const wantsHelp = argv.includes("--help") || argv.includes("-h");
  if (argv[0] === "doctor") {
    return wantsHelp ? print(doctorUsage, context) : runDoctor(argv.slice(1), context);
  }
  const [option, ...rest] = wantsHelp ? ["--help"] : argv;
  const isStrict = option === "--check" && rest.length === 1 && rest[0] === "--strict";
  if (option !== undefined && rest.length > 0 && !isStrict)
    return refuseUsage(`"${rest.join(" ")}" is too much: there is one argument at most`, context);
  switch (option) {
    case "--help":
      return print(usage, context);
    case "--check":
      return withConfig(
        readConfig,
        (config, host) => runCheck(config, host, isStrict, context),
        context.err,
        context,
      );
    case "--prepare":
      return withConfig(
        readPackagesConfig,
        (config, host) => runPrepare(config, host, context),
        context.err,
        context,
      );
    case undefined:
      // A worker logs to standard output; a check keeps that for its report.
      return withConfig(
        readConfig,
        (config, host) => runWorker(config, host, context),
        context.out,
        context,
      );
    default:
      return refuseUsage(`there is no argument "${option}"`, context);
  }
}

function print(text: string, { out }: Context): number {
  out.write(text);
  return exit.ok;
}

/**
 * @param problem a sentence that names the argument
 * @param command the command with the fitting `--help`
 */
function refuseUsage(problem: string, { err }: Context, command = "str-worker"): number {
  err.write(`str-worker: ${problem}; ${command} --help says what there is\n`);
  return exit.usage;
}

async function withConfig(
  read: (environment: Environment) => Config,
  run: (config: Config, host: Host) => Promise<number>,
  logStream: Output,
  context: Context,
): Promise<number> {
  const { environment, err, preparations } = context;
  try {
    const config = read(environment);
    context.closeInheritedDescriptors();
    const { logLevel, logFormat } = config;
    const destination = logDestination(logStream, logFormat, logLevel);
    const host = createHost(createLogger(logLevel, destination), environment, preparations);
    return await run(config, host);
  } catch (error) {
    err.write(`str-worker: ${explain(error)}\n`);
    return exitCodeOf(error);
  }
}

async function runCheck(
  config: Config,
  host: Host,
  isStrict: boolean,
  context: Context,
): Promise<number> {
  return untilStopped(host, context, async (signal) => {
    const { text, problems } = await check(config, host, signal);
    context.out.write(`${text}\n`);
    if (!isStrict || problems.length === 0) return exit.ok;
    context.err.write(problems.map((problem) => `str-worker: ${problem}\n`).join(""));
    return exit.config;
  });
}

async function runPrepare(config: Config, host: Host, context: Context): Promise<number> {
  return untilStopped(host, context, async (signal) => {
    const { prepare } = await import("./prepare.ts");
    const { text, problems } = await prepare(config, host, signal);
    context.out.write(`${text}\n`);
    return problems.length === 0 ? exit.ok : exit.unavailable;
  });
}

async function runDoctor(options: readonly string[], context: Context): Promise<number> {
  const asked = readDoctorOptions(options);
  if (typeof asked === "string") return refuseUsage(asked, context, "str-worker doctor");
  const choice = { ...asked, screen: context.err };
  const consult = (config: Config, host: Host): Promise<number> =>
    untilStopped(host, context, async (signal) => {
      // Loads the attacks only for this command.
      const { consultDoctor } = await import("./doctor.ts");
      const { text, isGood } = await consultDoctor(config, host, choice, signal);
      context.out.write(`${text}\n`);
      return isGood ? exit.ok : exit.unfit;
    });
  return withConfig(readSandboxConfig, consult, context.err, context);
}

/** The first SIGTERM or SIGINT aborts and cleans up; a second one ends the process immediately. */
async function untilStopped(
  host: Host,
  context: Context,
  run: (signal: AbortSignal) => Promise<number>,
): Promise<number> {
  const stopping = new AbortController();
  onSignals(host, context, (signal) => {
    const stopped = new StoppedError(signal);
    if (stopping.signal.aborted) context.exitNow(exitCodeOf(stopped));
    stopping.abort(stopped);
  });
  try {
    return await run(stopping.signal);
  } catch (error) {
    stopping.signal.throwIfAborted();
    throw error;
  }
}

/** Listens to SIGTERM and SIGINT without duplicates. */
function onSignals(
  { clock }: Host,
  context: Context,
  listener: (signal: StoppingSignal) => void,
): void {
  const isNew = createSignalFilter(clock);
  context.onSignal((signal) => {
    if (isNew(signal)) listener(signal);
  });
}

/** The first SIGTERM or SIGINT drains; a second one stops immediately. */
async function runWorker(config: Config, host: Host, context: Context): Promise<number> {
  const { log } = host;
  await using worker = new Worker(config, host);
  const [first, second] = [signalled(), signalled()];
  const starting = new AbortController();
  onSignals(host, context, (signal) => {
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
    const isForeseen = exitCodeOf(cause.error) !== exit.software;
    const facts: FactsOf<"worker.failed"> = isForeseen
      ? { reason: explain(cause.error) }
      : { err: cause.error };
    logEvent(log, "worker.failed", facts);
    // Answers the calls that the broker has already sent.
    await worker.drain(0);
    return exitCodeOf(cause.error);
  }
  logEvent(log, "worker.draining", { drainTimeoutSeconds: config.drainTimeoutSeconds });
  const drained = worker.drain(config.drainTimeoutSeconds * 1000);
  const forced = await Promise.race([drained, second.promise]);
  if (typeof forced === "string") {
    logEvent(log, "worker.stopped_at_once", { signal: forced });
    worker.shutdownNow();
    return exitCodeOf(new StoppedError(forced));
  }
  logEvent(log, "worker.drained", forced);
  return exit.ok;
}

function signalled(): PromiseWithResolvers<StoppingSignal> {
  return Promise.withResolvers();
}
