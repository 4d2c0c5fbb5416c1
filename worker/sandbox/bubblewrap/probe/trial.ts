/**
 * Trial sandboxes, which show the features that this host allows.
 */
import type { Clock } from "../../../support/clock.ts";
import { settlesWithin } from "../../../support/timeout.ts";
import { type ExitReport, SandboxError } from "../../sandbox.ts";
import type { BwrapExecution } from "../execution.ts";
import { startBwrap } from "../process.ts";

/** Time limit of a trial's answers in milliseconds, on a host that is busy starting. */
const trialTimeoutMs = 20_000;
/** Characters of a trial's output; the answers are about twenty short lines. */
const maxOutputLength = 16 * 1024;
/** Last line of a script, which then waits for the observation. */
const lastLine = "ready\n";

/** Settings of all trials. */
export interface TrialHost {
  readonly bwrapBin: string;
  /** See `ownerTag()`. */
  readonly ownerTag: string;
  /** Host uid of sandboxes, or undefined for the worker's own. */
  readonly uid: number | undefined;
  readonly clock: Clock;
  /** Cancels trials; their refusals then prove nothing. */
  readonly signal: AbortSignal;
}

/** The command of one trial. */
export interface TrialCommand {
  /** bubblewrap's options. */
  readonly options: readonly string[];
  readonly argv: readonly string[];
  readonly seccomp: Uint8Array | undefined;
}

/** Why a trial failed, in the words of bubblewrap or of its command. */
export interface Refusal {
  readonly refusal: string;
}

/** A sandbox whose script has answered, and waits. Disposing ends it. */
export interface OpenTrial extends AsyncDisposable {
  /** The script's lines `name: value`, by name. */
  readonly answers: ReadonlyMap<string, string>;
  /** The sandbox's first process, by its id on this host. */
  readonly firstPid: number;
  /** Number of its own network namespace, or undefined. See namespaces(7). */
  readonly networkNamespace: number | undefined;
}

/** Runs a trial to its end; undefined for exit code 0. */
export async function refusalOf(
  host: TrialHost,
  command: TrialCommand,
): Promise<string | undefined> {
  const execution = await start(host, command);
  if ("refusal" in execution) return execution.refusal;
  await settlesWithin(execution.exited, trialTimeoutMs, host.clock, host.signal);
  const report = await execution.stop(0);
  return report.exitCode === 0 ? undefined : wordsOf(report);
}

/** Starts a trial, and waits for its answers. The caller owns it. */
export async function openTrial(
  host: TrialHost,
  command: TrialCommand,
): Promise<OpenTrial | Refusal> {
  const execution = await start(host, command);
  if ("refusal" in execution) return execution;
  const ready = Promise.withResolvers<void>();
  let text = "";
  execution.stdout.on("data", (chunk: Buffer) => {
    text = (text + chunk.toString("utf8")).slice(0, maxOutputLength);
    if (text.endsWith(lastLine)) ready.resolve();
  });
  const ended = Promise.race([ready.promise, execution.exited]);
  await settlesWithin(ended, trialTimeoutMs, host.clock, host.signal);
  const { firstPid, networkNamespace } = execution;
  if (!text.endsWith(lastLine) || firstPid === undefined)
    return { refusal: wordsOf(await execution.stop(0)) };
  return {
    answers: readLines(text),
    firstPid,
    networkNamespace,
    [Symbol.asyncDispose]: async () => void (await execution.stop(0)),
  };
}

async function start(host: TrialHost, command: TrialCommand): Promise<BwrapExecution | Refusal> {
  const { bwrapBin, ownerTag, uid, clock } = host;
  try {
    const free = { placement: [], openUsage: undefined };
    return await startBwrap({ bwrapBin, ownerTag, uid, ...free, ...command }, clock);
  } catch (error) {
    if (!(error instanceof SandboxError)) throw error;
    const { message, cause } = error;
    return { refusal: cause instanceof Error ? `${message}: ${cause.message}` : message };
  }
}

function wordsOf({ stderr, exitCode, signal }: ExitReport): string {
  const words = stderr.text.trim();
  return words === "" ? `it said nothing and ended with ${signal ?? exitCode ?? "no code"}` : words;
}

function readLines(text: string): ReadonlyMap<string, string> {
  const lines = text.matchAll(/^([\w-]+): ?(.*)$/gm);
  return new Map([...lines].map(([, name = "", value = ""]) => [name, value]));
}
