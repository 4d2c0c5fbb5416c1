/**
 * One command on the bare host: started, watched until nothing that it left can be found, stopped.
 */
import { readdirSync } from "node:fs";
import type { Duplex, Readable, Writable } from "node:stream";
import type { LimitReached } from "../../protocol/resource-limits.ts";
import type { Clock } from "../../support/clock.ts";
import { readProc } from "../proc/files.ts";
import { signalQuietly } from "../proc/processes.ts";
import { readStat } from "../proc/stat.ts";
import { type Execution, type ExitReport, SandboxError, gatewayFd } from "../sandbox.ts";
import { Stopping } from "../stopping.ts";
import { type Subprocess, awaitOutput, startSubprocess } from "../subprocess.ts";

/** Milliseconds between two looks for processes that were killed. */
const goneLookMs = 2;
/**
 * Looks in a row that have to find nobody: a process may be born, and its parent end, behind the
 * back of one.
 */
const quietLooks = 2;
/** Milliseconds after which processes that are still there are given up. */
const goneTimeoutMs = 5_000;

/** What to start. */
export interface HostCommand {
  /** With its limits before it. */
  readonly argv: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  readonly workDir: string;
  /** Whether the command's descriptor 0 is a pipe. */
  readonly hasStdin: boolean;
  /** Whether the command's descriptor {@link gatewayFd} is a socket. */
  readonly hasGateway: boolean;
  readonly uid: number | undefined;
  /** Tells this command's processes from all others; see {@link HostExecution}. */
  readonly mark: number;
}

/** Starts a command. Throws SandboxError when it cannot be started. */
export async function startOnHost(command: HostCommand, clock: Clock): Promise<HostExecution> {
  const { mark } = command;
  const [file, ...argv] = ["/usr/bin/prlimit", `--rttime=${mark}:${mark}`, "--", ...command.argv];
  try {
    const child = await startSubprocess({
      file,
      argv,
      env: command.environment,
      cwd: command.workDir,
      hasStdin: command.hasStdin,
      socketFd: command.hasGateway ? gatewayFd : undefined,
      uid: command.uid,
    });
    return new HostExecution(child, mark, clock);
  } catch (error) {
    throw new SandboxError(`cannot start ${file}`, { cause: error });
  }
}

/**
 * A command without isolation. Its processes bear a mark that no session, no other parent and no
 * new environment takes off: a limit, inherited by whatever a process starts, on the time of
 * real-time threads (RLIMIT_RTTIME, getrlimit(2)). It bounds nothing, since it is some decades, and
 * its number is used once. Who wants to get away can: by a lower limit, or by a child that takes
 * over again and again before it is seen.
 */
export class HostExecution implements Execution {
  readonly exited: Promise<ExitReport>;
  readonly #child: Subprocess;
  readonly #mark: number;
  readonly #clock: Clock;
  readonly #stopping: Stopping;
  #isGone = false;
  #exceeded: LimitReached | undefined;

  constructor(child: Subprocess, mark: number, clock: Clock) {
    this.#child = child;
    this.#mark = mark;
    this.#clock = clock;
    this.exited = this.#watch();
    this.#stopping = new Stopping(
      {
        exited: this.exited,
        started: () => Promise.resolve(),
        terminate: () => child.kill("SIGTERM"),
        kill: () => this.#killAll(),
      },
      clock,
    );
  }

  get stdin(): Writable | undefined {
    return this.#child.stdin;
  }

  get gateway(): Duplex | undefined {
    return this.#child.socket;
  }

  get stdout(): Readable {
    return this.#child.stdout;
  }

  get stderr(): Readable {
    return this.#child.stderr;
  }

  stop(graceMs: number): Promise<ExitReport> {
    return this.#stopping.stop(graceMs);
  }

  end(limit: LimitReached): void {
    if (this.#isGone) return;
    this.#exceeded ??= limit;
    this.#killAll();
  }

  /** Kills what can be found. Returns one of them, or undefined when there was none. */
  #killAll(): number | undefined {
    if (this.#isGone) return undefined;
    // Also before it bears the mark.
    this.#child.kill("SIGKILL");
    const found = marked(this.#mark);
    // Another user's, such as a program with the set-user-ID bit, is found again.
    for (const pid of found) signalQuietly(pid, "SIGKILL");
    return found[0];
  }

  async #watch(): Promise<ExitReport> {
    const startMs = this.#clock.monotonicMs();
    try {
      const { exitCode, signal } = await this.#child.exited;
      await this.#endRest();
      this.#isGone = true;
      await awaitOutput(this.#child, this.#clock);
      return {
        started: true,
        exitCode,
        signal,
        exceeded: this.#exceeded,
        usage: {
          wallMs: this.#clock.monotonicMs() - startMs,
          cpuMs: undefined,
          peakMemoryBytes: undefined,
          peakProcesses: undefined,
        },
        ...this.#child.output(),
      };
    } finally {
      this.#child.close();
    }
  }

  /** What a command leaves in the background ends with it, as in every sandbox. */
  async #endRest(): Promise<void> {
    const deadlineMs = this.#clock.monotonicMs() + goneTimeoutMs;
    for (let quiet = 0; quiet < quietLooks;) {
      const left = this.#killAll();
      quiet = left === undefined ? quiet + 1 : 0;
      if (left !== undefined && this.#clock.monotonicMs() > deadlineMs)
        throw new SandboxError(`process ${left} cannot be killed`);
      await this.#clock.sleep(goneLookMs);
    }
  }
}

/** Ids of the processes that bear a mark, without those that are dead and wait for their parent. */
function marked(mark: number): readonly number[] {
  const ids = readdirSync("/proc").map(Number).filter(Number.isInteger);
  return ids.filter(
    (id) =>
      readProc(`/proc/${id}/limits`).includes(` ${mark} `) &&
      // One that is gone by now counts: it may have left another behind the back of this look.
      readStat(`/proc/${id}`)?.hasEnded !== true,
  );
}
