/**
 * Sandboxes that are made to find out what this host allows.
 */
import type { Clock } from "../../../support/clock.ts";
import { settlesWithin } from "../../../support/within.ts";
import { type ExitReport, SandboxError } from "../../sandbox.ts";
import { type BwrapExecution, startBwrap } from "../process.ts";

/** Milliseconds that a trial may take to say everything, on a host that is busy starting. */
const trialTimeoutMs = 20_000;
/** Characters that are kept of what a trial says; it is about twenty short lines. */
const maxOutputLength = 16 * 1024;
/** What a script says last; then it waits to be looked at. */
const lastLine = "ready\n";

/** What every trial is started with. */
export interface TrialHost {
  readonly bwrapBin: string;
  /** See `ownerTag`. */
  readonly ownerTag: string;
  /** Host uid of sandboxes, or undefined for the worker's own. */
  readonly uid: number | undefined;
  readonly clock: Clock;
  /** Ends trials early: their refusals say nothing then. */
  readonly signal: AbortSignal;
}

/** What one trial runs. */
export interface TrialCommand {
  /** bubblewrap's options. */
  readonly options: readonly string[];
  readonly argv: readonly string[];
  readonly seccomp: Uint8Array | undefined;
}

/** Why a trial came to nothing, in bubblewrap's words or in those of what it ran. */
export interface Refusal {
  readonly refusal: string;
}

/** A sandbox whose script has said everything, and waits. Disposing it ends it. */
export interface OpenTrial extends AsyncDisposable {
  /** Lines of the form `name: value`, by name. */
  readonly answers: ReadonlyMap<string, string>;
  /** The sandbox's first process, as this host numbers it. */
  readonly firstPid: number;
  /**
   * Number of the network namespace that was made for it; undefined when none was. See
   * namespaces(7).
   */
  readonly networkNamespace: number | undefined;
}

/** Runs a trial to its end; undefined when that is exit code 0. */
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

/** Starts a trial whose script says `ready` when it has said everything. The caller owns it. */
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
    const free = { placement: [], openTotals: undefined };
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
