/**
 * One container, watched until nothing of it is left, and stopped.
 */
import { constants } from "node:os";
import type { Duplex, Readable, Writable } from "node:stream";
import type { LimitReached } from "../../protocol/resource-limits.ts";
import type { Clock } from "../../support/clock.ts";
import { settlesWithin } from "../../support/timeout.ts";
import { limitOfSignal } from "../accounting/exit-reason.ts";
import type { SandboxUsage } from "../accounting/sandbox-usage.ts";
import { type Execution, type ExitReport, SandboxError } from "../sandbox.ts";
import { Stopping } from "../stopping.ts";
import { type Subprocess, type SubprocessExit, awaitOutput } from "../subprocess.ts";
import type { OciContainer } from "./runtime.ts";

/** Milliseconds that a runtime may take to tell a container's first process. */
const startTimeoutMs = 30_000;
/** 128 + the number of a signal is the exit code for it, as shells have it. */
const signalBase = 128;
/** The first name wins where a signal has two: SIGABRT, not SIGIOT. */
const signalNames = new Map(
  Object.entries(constants.signals)
    .toReversed()
    .map(([name, number]) => [number, name]),
);

/** What an execution is made of. It owns all but the clock. */
export interface OciExecutionParts {
  readonly child: Subprocess;
  readonly container: OciContainer;
  readonly usage: SandboxUsage;
  /** Whether the host's processes are the sandbox's. */
  readonly countsProcesses: boolean;
  readonly gateway: Duplex | undefined;
  readonly clock: Clock;
}

/** A running container. */
export class OciExecution implements Execution {
  readonly exited: Promise<ExitReport>;
  readonly gateway: Duplex | undefined;
  readonly #child: Subprocess;
  readonly #container: OciContainer;
  readonly #usage: SandboxUsage;
  readonly #countsProcesses: boolean;
  readonly #clock: Clock;
  readonly #stopping: Stopping;
  #isOver = false;
  #isKilled = false;
  #exceeded: LimitReached | undefined;
  #failure: SandboxError | undefined;

  constructor({ child, container, usage, countsProcesses, gateway, clock }: OciExecutionParts) {
    this.gateway = gateway;
    this.#child = child;
    this.#container = container;
    this.#usage = usage;
    this.#countsProcesses = countsProcesses;
    this.#clock = clock;
    this.exited = this.#watch();
    this.#stopping = new Stopping(
      {
        exited: this.exited,
        started: () => settlesWithin(container.started, startTimeoutMs, clock),
        terminate: () => container.terminate(),
        kill: () => this.#kill(),
      },
      clock,
    );
  }

  get stdin(): Writable | undefined {
    return this.#child.stdin;
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
    if (this.#isOver) return;
    this.#exceeded ??= limit;
    // One that is not known yet is killed when it is.
    void this.#container.started.then(() => this.#kill());
  }

  #kill(): void {
    if (this.#isOver) return;
    this.#isKilled = true;
    this.#container.kill();
  }

  async #watch(): Promise<ExitReport> {
    const startMs = this.#clock.monotonicMs();
    try {
      using usage = this.#usage;
      void this.#container.started.then((pid) => this.#sample(pid));
      const exit = await this.#child.exited;
      usage.sampleLast();
      const started = await this.#container.ended();
      this.#isOver = true;
      await awaitOutput(this.#child, this.#clock);
      if (this.#failure !== undefined) throw this.#failure;
      return this.#report(exit, started, this.#clock.monotonicMs() - startMs);
    } finally {
      this.#isOver = true;
      this.gateway?.destroy();
      this.#child.close();
    }
  }

  #report(exit: SubprocessExit, started: boolean, wallMs: number): ExitReport {
    const used = this.#usage.usage;
    const { cpuMs, peakMemoryBytes } = used;
    const peakProcesses = this.#countsProcesses ? used.peakProcesses : undefined;
    const end = started
      ? endingOf(exit, this.#isKilled)
      : { exitCode: undefined, signal: exit.signal };
    const isOurs = this.#isKilled || this.#stopping.isAsked;
    // A group kills the sandbox's kernel, whose runtime then has a reason of its own.
    const signal = used.memoryKills > 0 ? "SIGKILL" : end.signal;
    const byKernel = isOurs ? undefined : limitOfSignal(signal, this.#usage.limits, used);
    return {
      started: started || byKernel !== undefined,
      ...end,
      exceeded: this.#exceeded ?? byKernel,
      usage: { wallMs, cpuMs, peakMemoryBytes, peakProcesses },
      ...this.#child.output(),
    };
  }

  #sample(pid: number | undefined): void {
    if (pid === undefined || this.#isOver) return;
    this.#usage.begin(pid, {
      onExceeded: (limit) => this.end(limit),
      onFailed: (error) => {
        this.#failure ??= new SandboxError("the usage of a sandbox cannot be sampled", {
          cause: error,
        });
        this.#kill();
      },
    });
  }
}

/** A runtime that was killed with its container says nothing of the command. */
function endingOf(
  { exitCode, signal }: SubprocessExit,
  isKilled: boolean,
): Pick<ExitReport, "exitCode" | "signal"> {
  const named = exitCode === undefined ? signal : signalNames.get(exitCode - signalBase);
  if (named !== undefined) return { exitCode: undefined, signal: named };
  if (isKilled && exitCode === undefined) return { exitCode: undefined, signal: "SIGKILL" };
  return { exitCode, signal: undefined };
}
