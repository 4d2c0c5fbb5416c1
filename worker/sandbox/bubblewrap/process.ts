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
import type { MemoryGuard } from "../memory-guard.ts";
import { markOptions } from "../orphans.ts";
import { type Execution, type ExitReport, type OutputListener, SandboxError } from "../sandbox.ts";
import { type Subprocess, type SubprocessExit, startSubprocess } from "../subprocess.ts";

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
  /** What bounds the sandbox's memory from outside, and to what; undefined when nothing does. */
  readonly memory: { readonly guard: MemoryGuard; readonly limitBytes: number } | undefined;
}

/** Options in the form that `--args FD` reads: each ended by a NUL. */
export function encodeArgs(options: readonly string[]): string {
  return options.map((option) => `${option}\0`).join("");
}

/** Starts bubblewrap. Throws SandboxError when the program itself cannot be started. */
export async function startBwrap(command: BwrapCommand, clock: Clock): Promise<BwrapExecution> {
  try {
    // Descriptors: options and filter in, report out. The environment is empty because the sandbox's first process
    // shows the one bubblewrap was started with, whatever --clearenv says (bubblewrap issue 725).
    const options = encodeArgs(command.options);
    const { seccomp } = command;
    const child = await startSubprocess({
      file: command.bwrapBin,
      argv: [
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
      hasReport: true,
    });
    if (child.report === undefined) throw new Error("the child has no report descriptor");
    return new BwrapExecution(child, child.report, clock, command.memory);
  } catch (error) {
    throw new SandboxError(`cannot start ${command.bwrapBin}`, { cause: error });
  }
}

/** bubblewrap's report: the sandbox's first process as the host sees it, and the command's exit code. */
interface Report {
  childPid?: number;
  exitCode?: number;
}

/** A running sandbox. */
export class BwrapExecution implements Execution {
  readonly exited: Promise<ExitReport>;
  readonly #child: Subprocess;
  readonly #clock: Clock;
  readonly #report: Report = {};
  /** Fulfils when the sandbox's first process is known, or will never be. */
  readonly #begun: Promise<void>;
  /** From then on the numbers of the sandbox's processes may be other processes'. */
  #isGone = false;
  #stopping: Promise<ExitReport> | undefined;
  readonly #graceOver = Promise.withResolvers<void>();
  #exceeded: ExitReport["exceeded"];

  constructor(child: Subprocess, report: Readable, clock: Clock, memory: BwrapCommand["memory"]) {
    this.#child = child;
    this.#clock = clock;
    const { begun, ended } = readReport(report, this.#report);
    this.#begun = begun;
    this.exited = this.#watch(ended, memory);
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
    this.#child.kill("SIGKILL");
  }

  async #watch(reported: Promise<void>, memory: BwrapCommand["memory"]): Promise<ExitReport> {
    const startMs = this.#clock.monotonicMs();
    try {
      using _guarded = await this.#guard(memory);
      const exit = await this.#child.exited;
      await reported;
      await this.#awaitLastProcess();
      this.#isGone = true;
      // What was written is there at once. A tool may have sent its output's descriptor to a process elsewhere, so
      // the end of the stream is not waited for.
      await settlesWithin(this.#child.closed, outputGraceMs, this.#clock);
      const usage = {
        wallMs: this.#clock.monotonicMs() - startMs,
        cpuMs: undefined,
        peakMemoryBytes: undefined,
        peakProcesses: undefined,
      };
      return {
        ...ending(this.#report, exit),
        exceeded: this.#exceeded,
        usage,
        ...this.#child.output(),
      };
    } finally {
      this.#child.close();
    }
  }

  /** Has the sandbox's memory watched from the birth of its first process on. */
  async #guard(memory: BwrapCommand["memory"]): Promise<Disposable | undefined> {
    if (memory === undefined) return undefined;
    await this.#begun;
    const firstPid = this.#report.childPid;
    if (firstPid === undefined) return undefined;
    const onExceeded = (): void => {
      if (this.#isGone) return;
      this.end({ limit: "memoryBytes", bound: memory.limitBytes, peak: undefined });
    };
    return memory.guard.watch({ firstPid, limitBytes: memory.limitBytes, onExceeded });
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

/** Reads the report into `report`: `begun` when it names the first process or ends, `ended` when it ends. */
function readReport(
  stream: Readable,
  report: Report,
): { readonly begun: Promise<void>; readonly ended: Promise<void> } {
  const [begun, ended] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  let text = "";
  stream.setEncoding("utf8");
  stream.on("data", (chunk: string) => {
    text = (text + chunk).slice(0, maxReportBytes);
    for (const line of text.split("\n").slice(0, -1)) readReportLine(line, report);
    if (report.childPid !== undefined) begun.resolve();
  });
  stream.once("close", () => {
    begun.resolve();
    ended.resolve();
  });
  return { begun: begun.promise, ended: ended.promise };
}

function readReportLine(line: string, report: Report): void {
  const value = parseJson(Buffer.from(line));
  if (!isJsonObject(value)) return;
  if (typeof value["child-pid"] === "number") report.childPid = value["child-pid"];
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
