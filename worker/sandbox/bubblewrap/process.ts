/**
 * One bubblewrap process: started, watched until the sandbox's last process is gone, stopped.
 */
import { readFile } from "node:fs/promises";
import { constants } from "node:os";
import type { Readable } from "node:stream";
import type { Clock } from "../../support/clock.ts";
import { settlesWithin } from "../../support/within.ts";
import { isJsonObject, parseJson } from "../../support/json.ts";
import type { LimitReached } from "../../protocol/resource-limits.ts";
import { limitOfSignal } from "../exit-reason.ts";
import { markOptions } from "../orphans.ts";
import { type Execution, type ExitReport, type OutputListener, SandboxError } from "../sandbox.ts";
import { type Subprocess, type SubprocessExit, startSubprocess } from "../subprocess.ts";
import type { TotalUsage, Totals } from "../totals/totals.ts";

/** Milliseconds between looks at whether the sandbox's first process is gone. bubblewrap exits about 1 ms before it. */
const goneLookMs = 1;
/** Milliseconds after which processes that are still there are killed again and the sandbox is given up. */
const goneTimeoutMs = 5_000;
/** Milliseconds that reading the rest of the output may take once nobody inside can write. */
const outputGraceMs = 250;
/** Milliseconds that bubblewrap may take to create the sandbox's first process. */
const beginTimeoutMs = 5_000;
/** Bytes of bubblewrap's status report; it is two short lines. */
const maxReportBytes = 16 * 1024;
/** 128 + the number of a signal is the exit code for it (bwrap(1), as shells do). */
const signalBase = 128;

/** What to start. */
export interface BwrapCommand {
  readonly bwrapBin: string;
  /** What tells this worker's sandboxes from others'; see `sandboxMark`. */
  readonly mark: string;
  /** Options for `--args`. */
  readonly options: readonly string[];
  readonly argv: readonly string[];
  /** The system-call filter, or undefined where there is none for this architecture. */
  readonly seccomp: Uint8Array | undefined;
  readonly uid: number | undefined;
  /** What places bubblewrap, and so the sandbox, on some CPUs; see `placement`. */
  readonly placement: readonly string[];
  /** What keeps the sandbox's totals, or undefined for a trial that needs none. Disposed with the sandbox. */
  readonly totals: Totals | undefined;
}

/** Options in the form that `--args FD` reads: each ended by a NUL. */
export function encodeArgs(options: readonly string[]): string {
  return options.map((option) => `${option}\0`).join("");
}

/** Starts bubblewrap. Throws SandboxError when the program itself cannot be started. */
export async function startBwrap(command: BwrapCommand, clock: Clock): Promise<BwrapExecution> {
  const { totals } = command;
  try {
    // Descriptors: options and filter in, report out. The environment is empty because the sandbox's first process
    // shows the one bubblewrap was started with, whatever --clearenv says (bubblewrap issue 725).
    const options = encodeArgs(command.options);
    const { seccomp } = command;
    const [file = command.bwrapBin, ...argv] = [...command.placement, command.bwrapBin];
    const child = await startSubprocess({
      file,
      argv: [
        ...argv,
        ...markOptions(command.mark),
        ...(seccomp === undefined
          ? ["--args", "3", "--json-status-fd", "4"]
          : ["--args", "3", "--seccomp", "4", "--json-status-fd", "5"]),
        "--",
        ...command.argv,
      ],
      env: {},
      uid: command.uid,
      inputs: seccomp === undefined ? [options] : [options, seccomp],
      // bubblewrap makes no process before it has its options.
      beforeInputs: async (pid) => totals?.enter(pid),
      hasReport: true,
    });
    if (child.report === undefined) throw new Error("the child has no report descriptor");
    return new BwrapExecution(child, child.report, clock, totals);
  } catch (error) {
    await totals?.[Symbol.asyncDispose]();
    throw new SandboxError(`cannot start ${command.bwrapBin}`, { cause: error });
  }
}

/** bubblewrap's report: the sandbox's first process as the host sees it, its namespace, and the command's exit code. */
interface Report {
  childPid?: number;
  networkNamespace?: number;
  exitCode?: number;
}

/** A running sandbox. */
export class BwrapExecution implements Execution {
  readonly exited: Promise<ExitReport>;
  readonly #child: Subprocess;
  readonly #clock: Clock;
  readonly #report: Report = {};
  readonly #totals: Totals | undefined;
  /** Fulfils when the sandbox's first process is known, or will never be. */
  readonly #begun: Promise<void>;
  /** From then on the numbers of the sandbox's processes may be other processes'. */
  #isGone = false;
  #stopping: Promise<ExitReport> | undefined;
  readonly #graceOver = Promise.withResolvers<void>();
  #exceeded: ExitReport["exceeded"];

  constructor(child: Subprocess, report: Readable, clock: Clock, totals: Totals | undefined) {
    this.#child = child;
    this.#clock = clock;
    this.#totals = totals;
    const { begun, ended } = readReport(report, this.#report, () => totals?.lookLast());
    this.#begun = begun;
    this.exited = this.#watch(ended);
  }

  /** The sandbox's first process, as this host numbers it; undefined until it is known. */
  get firstPid(): number | undefined {
    return this.#report.childPid;
  }

  /** The number of a network namespace of its own, namespaces(7); undefined until it is known, and where there is none. */
  get networkNamespace(): number | undefined {
    return this.#report.networkNamespace;
  }

  onOutput(listener: OutputListener): void {
    this.#child.onOutput(listener);
  }

  stop(graceMs: number): Promise<ExitReport> {
    if (graceMs === 0) this.#graceOver.resolve();
    this.#stopping ??= this.#stop(graceMs);
    return this.#stopping;
  }

  end(limit: LimitReached): void {
    this.#exceeded ??= limit;
    void this.#killAll();
  }

  async #stop(graceMs: number): Promise<ExitReport> {
    const { exited } = this;
    // A bubblewrap that is killed between the birth of the sandbox's first process and letting it go leaves that
    // process waiting for ever, so it is not touched before we know whom else to kill.
    await settlesWithin(this.#begun, beginTimeoutMs, this.#clock);
    if (graceMs > 0) {
      await this.#terminate();
      await settlesWithin(Promise.race([exited, this.#graceOver.promise]), graceMs, this.#clock);
    }
    await this.#killAll();
    return exited;
  }

  /** SIGTERM to the command: the children of the sandbox's first process, which itself ignores it. */
  async #terminate(): Promise<void> {
    const first = this.#report.childPid;
    if (first === undefined || this.#isGone) return;
    for (const pid of await childrenOf(first)) signalQuietly(pid, "SIGTERM");
  }

  /** The end of a pid namespace's first process ends all the others (pid_namespaces(7)). */
  async #killAll(): Promise<void> {
    if (this.#isGone) return;
    const first = this.#report.childPid;
    const roots = first === undefined ? await childrenOf(this.#child.pid) : [first];
    for (const pid of roots) signalQuietly(pid, "SIGKILL");
    this.#totals?.kill();
    this.#child.kill("SIGKILL");
  }

  async #watch(reported: Promise<void>): Promise<ExitReport> {
    const startMs = this.#clock.monotonicMs();
    try {
      await using totals = this.#totals;
      await this.#begun;
      this.#begin();
      const exit = await this.#child.exited;
      await reported;
      await this.#awaitLastProcess();
      this.#isGone = true;
      // What was written is there at once. A tool may have sent its output's descriptor to a process elsewhere, so
      // the end of the stream is not waited for.
      await settlesWithin(this.#child.closed, outputGraceMs, this.#clock);
      const end = ending(this.#report, exit);
      const used = totals?.usage ?? unknownUsage;
      const { cpuMs, peakMemoryBytes, peakProcesses } = used;
      const wallMs = this.#clock.monotonicMs() - startMs;
      return {
        ...end,
        exceeded: this.#exceeded ?? this.#endedByKernel(end, used),
        usage: { wallMs, cpuMs, peakMemoryBytes, peakProcesses },
        ...this.#child.output(),
      };
    } finally {
      this.#child.close();
    }
  }

  /** Has the sandbox watched from the birth of its first process on. */
  #begin(): void {
    const first = this.#report.childPid;
    if (first === undefined) return;
    this.#totals?.begin(first, (limit) => {
      if (!this.#isGone) this.end(limit);
    });
  }

  /** What we end ourselves says nothing by its signal. */
  #endedByKernel(
    { signal }: Pick<ExitReport, "signal">,
    usage: TotalUsage,
  ): LimitReached | undefined {
    if (this.#totals === undefined || this.#stopping !== undefined) return undefined;
    return limitOfSignal(signal, this.#totals.limits, usage);
  }

  async #awaitLastProcess(): Promise<void> {
    const first = this.#report.childPid;
    if (first === undefined) return;
    const deadlineMs = this.#clock.monotonicMs() + goneTimeoutMs;
    while (!(await isGone(first))) {
      if (this.#clock.monotonicMs() > deadlineMs)
        throw new SandboxError(`process ${first} cannot be killed`);
      signalQuietly(first, "SIGKILL");
      await this.#clock.sleep(goneLookMs);
    }
  }
}

const unknownUsage: TotalUsage = {
  cpuMs: undefined,
  peakMemoryBytes: undefined,
  peakProcesses: undefined,
  memoryKills: 0,
};

/**
 * Reads the report into `report`: `begun` when it names the first process or ends, `ended` when it ends.
 *
 * @param onCommandEnded told at once when the command has ended, and the first process may still be there
 */
function readReport(
  stream: Readable,
  report: Report,
  onCommandEnded: () => void,
): { readonly begun: Promise<void>; readonly ended: Promise<void> } {
  const [begun, ended] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  let text = "";
  stream.setEncoding("utf8");
  stream.on("data", (chunk: string) => {
    text = (text + chunk).slice(0, maxReportBytes);
    for (const line of text.split("\n").slice(0, -1)) readReportLine(line, report);
    if (report.childPid !== undefined) begun.resolve();
    if (report.exitCode !== undefined) onCommandEnded();
  });
  const finish = (): void => {
    begun.resolve();
    ended.resolve();
  };
  stream.once("close", finish);
  // Of a bubblewrap that ended before its options were written, while it was moved into a control group.
  if (stream.closed) finish();
  return { begun: begun.promise, ended: ended.promise };
}

function readReportLine(line: string, report: Report): void {
  const value = parseJson(Buffer.from(line));
  if (!isJsonObject(value)) return;
  if (typeof value["child-pid"] === "number") report.childPid = value["child-pid"];
  if (typeof value["net-namespace"] === "number") report.networkNamespace = value["net-namespace"];
  if (typeof value["exit-code"] === "number") report.exitCode = value["exit-code"];
}

/** Processes whose parent is `pid`, as this host numbers them; none when it is gone. See proc_pid_task_children(5). */
async function childrenOf(pid: number): Promise<readonly number[]> {
  const text = await readFile(`/proc/${pid}/task/${pid}/children`, "utf8").catch(() => "");
  return text.split(" ").filter(Boolean).map(Number);
}

/** bubblewrap reports an exit code only for a command that it started. */
function ending(
  report: Report,
  exit: SubprocessExit,
): Pick<ExitReport, "started" | "exitCode" | "signal"> {
  if (report.exitCode === undefined) {
    // Killed from outside, or failed on the way to the command.
    const wasKilled = exit.signal !== undefined && report.childPid !== undefined;
    return { started: wasKilled, exitCode: undefined, signal: exit.signal };
  }
  const signal = signalNames.get(report.exitCode - signalBase);
  if (signal !== undefined) return { started: true, exitCode: undefined, signal };
  return { started: true, exitCode: report.exitCode, signal: undefined };
}

/** The first name wins where a signal has two: SIGABRT, not SIGIOT. */
const signalNames = new Map(
  Object.entries(constants.signals)
    .toReversed()
    .map(([name, number]) => [number, name]),
);

function signalQuietly(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // Already gone.
  }
}

/** Whether a process is gone or only a zombie that waits for its parent. See proc_pid_stat(5). */
async function isGone(pid: number): Promise<boolean> {
  try {
    const stat = await readFile(`/proc/${pid}/stat`, "utf8");
    return /\) [ZX]/.test(stat);
  } catch {
    // Also unreadable where /proc hides other users' processes, so ask again in a way that cannot be hidden.
    return !exists(pid);
  }
}

function exists(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== "ESRCH";
  }
}
