/**
 * One bubblewrap process: started, watched until the sandbox's last process is gone, stopped.
 */
import { readFile } from "node:fs/promises";
import { constants } from "node:os";
import type { Readable } from "node:stream";
import type { Clock } from "../../support/clock.ts";
import { isJsonObject } from "../../support/json.ts";
import { type Execution, type ExitReport, SandboxError } from "../sandbox.ts";
import { type Subprocess, type SubprocessExit, startSubprocess } from "../subprocess.ts";

/** Milliseconds between looks at whether the sandbox's first process is gone. bubblewrap exits about 1 ms before it. */
const goneLookMs = 1;
/** Milliseconds after which processes that are still there are killed again and the sandbox is given up. */
const goneTimeoutMs = 5_000;
/** Bytes of bubblewrap's status report; it is two short lines. */
const maxReportBytes = 16 * 1024;
/** Exit codes above this stand for a signal: 128 + its number (bwrap(1), as shells do). */
const signalBase = 128;

/** What to start. */
export interface BwrapCommand {
  readonly bwrapBin: string;
  /** Options for `--args`. */
  readonly options: readonly string[];
  readonly argv: readonly string[];
  readonly uid: number | undefined;
}

/** Options in the form that `--args FD` reads: each ended by a NUL. */
export function encodeArgs(options: readonly string[]): string {
  return options.map((option) => `${option}\0`).join("");
}

/** Starts bubblewrap. Throws SandboxError when the program itself cannot be started. */
export async function startBwrap(command: BwrapCommand, clock: Clock): Promise<BwrapExecution> {
  try {
    const child = await startSubprocess({
      file: command.bwrapBin,
      // Descriptors 3 and 4: options in, report out. The environment is empty because the sandbox's first process
      // shows the one bubblewrap was started with, whatever --clearenv says (bubblewrap issue 725).
      argv: ["--args", "3", "--json-status-fd", "4", "--", ...command.argv],
      env: {},
      uid: command.uid,
      inputs: [encodeArgs(command.options)],
      hasReport: true,
    });
    return new BwrapExecution(child, clock);
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
  #stopping: Promise<ExitReport> | undefined;

  constructor(child: Subprocess, clock: Clock) {
    this.#child = child;
    this.#clock = clock;
    const reported = readReport(child.report, this.#report);
    this.exited = this.#watch(reported);
  }

  stop(graceMs: number): Promise<ExitReport> {
    this.#stopping ??= this.#stop(graceMs);
    return this.#stopping;
  }

  async #stop(graceMs: number): Promise<ExitReport> {
    const over = new AbortController();
    const exited = this.exited.finally(() => over.abort());
    exited.catch(() => undefined);
    if (graceMs > 0) {
      await this.#terminate();
      await this.#clock.sleep(graceMs, over.signal).catch(() => undefined);
    }
    if (!over.signal.aborted) this.#killAll();
    return exited;
  }

  /** SIGTERM to the command: the children of the sandbox's first process, which itself ignores it. */
  async #terminate(): Promise<void> {
    const first = this.#report.childPid;
    if (first === undefined) return;
    const children = await readFile(`/proc/${first}/task/${first}/children`, "utf8").catch(
      () => "",
    );
    for (const pid of children.split(" ").map(Number)) if (pid > 0) signalQuietly(pid, "SIGTERM");
  }

  /** The end of a pid namespace's first process ends all the others (pid_namespaces(7)). */
  #killAll(): void {
    if (this.#report.childPid !== undefined) signalQuietly(this.#report.childPid, "SIGKILL");
    this.#child.kill("SIGKILL");
  }

  async #watch(reported: Promise<void>): Promise<ExitReport> {
    try {
      const exit = await this.#child.exited;
      await reported;
      await this.#awaitLastProcess();
      // Nobody is left to hold the other ends, so the rest of the output is there at once.
      await this.#child.closed;
      return { ...ending(this.#report, exit), ...this.#child.output() };
    } finally {
      this.#child.close();
    }
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

/** Reads the report to its end into `report`. */
async function readReport(stream: Readable | undefined, report: Report): Promise<void> {
  if (stream === undefined) return;
  let text = "";
  stream.setEncoding("utf8");
  stream.on("data", (chunk: string) => {
    text = (text + chunk).slice(0, maxReportBytes);
    for (const line of text.split("\n").slice(0, -1)) readReportLine(line, report);
  });
  await new Promise<void>((resolve) => stream.once("close", resolve));
}

function readReportLine(line: string, report: Report): void {
  const value: unknown = JSON.parse(line);
  if (!isJsonObject(value)) return;
  if (typeof value["child-pid"] === "number") report.childPid = value["child-pid"];
  if (typeof value["exit-code"] === "number") report.exitCode = value["exit-code"];
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
  if (report.exitCode > signalBase) {
    return { started: true, exitCode: undefined, signal: signalName(report.exitCode - signalBase) };
  }
  return { started: true, exitCode: report.exitCode, signal: undefined };
}

const signalNames = new Map(
  Object.entries(constants.signals).map(([name, number]) => [number, name]),
);

function signalName(number: number): string {
  return signalNames.get(number) ?? `signal ${number}`;
}

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
