/**
 * One bubblewrap process, watched until the sandbox's last process is gone, and stopped.
 */
import type { Duplex, Readable, Writable } from "node:stream";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { Clock } from "../../support/clock.ts";
import { settlesWithin } from "../../support/timeout.ts";
import type { LimitReached } from "../../protocol/resource-limits.ts";
import type { Amount } from "../accounting/disk-usage.ts";
import type { SandboxUsage, TotalUsage } from "../accounting/sandbox-usage.ts";
import { limitOfSignal } from "../accounting/exit-reason.ts";
import type { HeldSandbox } from "../network/door.ts";
import type { OpenFile } from "../proc/files.ts";
import { knownChildrenOf, openChildren, signalQuietly } from "../proc/processes.ts";
import { type Execution, type ExitReport, SandboxError } from "../sandbox.ts";
import { Stopping } from "../stopping.ts";
import { type Subprocess, awaitOutput, killWithChildren } from "../subprocess.ts";
import type { CallEnd } from "./idle/call-end.ts";
import { awaitEnd, isAlone, killCommand } from "./sandbox-processes.ts";
import { type StatusReport, ending, readReport } from "./status-report.ts";

/** Milliseconds that bubblewrap may take to create the sandbox's first process. */
const beginTimeoutMs = 5_000;

/** A running sandbox. */
export class BwrapExecution implements Execution {
  readonly exited: Promise<ExitReport>;
  /** The report once the last process is gone. */
  readonly #gone: Promise<ExitReport>;
  readonly #ending = Promise.withResolvers<ExitReport>();
  readonly #child: Subprocess;
  readonly #clock: Clock;
  readonly #report: StatusReport = {};
  readonly #usage: SandboxUsage | undefined;
  /** Fulfils when the sandbox's first process is known, or will never be. */
  readonly #started: Promise<void>;
  #startMs: number;
  /** From then on the numbers of the sandbox's processes may be other processes'. */
  #isGone = false;
  readonly #stopping: Stopping;
  #exceeded: ExitReport["exceeded"];
  #failure: SandboxError | undefined;
  /** Of a call that ends by its wake channel. */
  #callEnd: CallEnd | undefined;
  /** Until the end is seen. Nobody closes what is opened after that. */
  #isWatched = true;
  /** Of the first process, while it has a call. */
  #children: OpenFile | undefined;
  #isDone = false;
  /** Everything has been killed. */
  #isEnding = false;

  constructor(child: Subprocess, report: Readable, clock: Clock, usage: SandboxUsage | undefined) {
    this.#child = child;
    this.#clock = clock;
    this.#startMs = clock.monotonicMs();
    this.#usage = usage;
    const { started, ended } = readReport(report, this.#report, () => usage?.sampleLast());
    this.#started = started;
    this.#gone = this.#watch(ended);
    this.exited = Promise.race([this.#gone, this.#ending.promise]);
    this.#stopping = new Stopping(
      {
        exited: this.#gone,
        // A bubblewrap that is killed between the birth of the sandbox's first process and letting
        // it go leaves that process waiting for ever, so it is not touched before we know whom else
        // to kill.
        started: () => settlesWithin(started, beginTimeoutMs, clock),
        terminate: () => this.#terminate(),
        kill: () => this.#killAll(),
      },
      clock,
    );
  }

  /** bubblewrap itself; all of the sandbox descends from it. */
  get pid(): number {
    return this.#child.pid;
  }

  /** Our end of the socket that is the command's descriptor 0, or undefined when it has none. */
  get channel(): Duplex | undefined {
    return this.#child.channel;
  }

  /** The sandbox's first process, as this host numbers it; undefined until it is known. */
  get firstPid(): number | undefined {
    return this.#report.childPid;
  }

  /**
   * The number of a network namespace of its own, namespaces(7); undefined until it is known, and
   * where there is none.
   */
  get networkNamespace(): number | undefined {
    return this.#report.networkNamespace;
  }

  /** Waits for the namespaces of a command that is held; undefined when it ended before. */
  async namespaces(): Promise<HeldSandbox | undefined> {
    await this.#started;
    const { childPid: pid, networkNamespace: namespace } = this.#report;
    if (pid === undefined || namespace === undefined) return undefined;
    return { pid, namespace, raisesLoopback: false };
  }

  /** Lets a command that is held begin. */
  letGo(): void {
    this.#child.hold?.end("go");
  }

  /** The command has nothing to do until `beginCall`, and is sampled less often. */
  async rest(): Promise<void> {
    await this.#started;
    this.#usage?.rest();
  }

  /** The command only makes others from now on, each of which is sampled by itself. */
  unwatch(): void {
    this.#usage?.unwatch();
  }

  /** Files of a call in the work directory do not count, also while they are written. */
  stage(staged: () => Amount): void {
    this.#usage?.stage(staged);
  }

  /**
   * Gives the command a call, whose time counts from now on, and of which so much lies in the work
   * directory. Returns what `give` returns.
   */
  beginCall<Given>(staged: Amount, give: () => Given): Given {
    this.#startMs = this.#clock.monotonicMs();
    const given = give();
    // In the same turn, but when the command is on its way.
    this.#usage?.beginCall(staged);
    return given;
  }

  /**
   * Ends the command when it is done, in place of its own exit.
   *
   * @param isAwaited whether something waits until all of the sandbox is gone
   */
  endBy(callEnd: CallEnd, isAwaited: () => boolean): void {
    this.#callEnd = callEnd;
    const first = this.#report.childPid;
    // While the command works, so that no time is lost at its end.
    if (first !== undefined && this.#isWatched) this.#children = openChildren(first);
    void callEnd.done.then(() => this.#finish(isAwaited));
  }

  /** docs/adr/0048-an-answer-when-the-result-is-there.md says why this is enough. */
  async #finish(isAwaited: () => boolean): Promise<void> {
    const first = this.#report.childPid;
    if (this.#isGone || first === undefined) return;
    this.#isDone = true;
    // What the command printed is there, and read in the next turn. The ends of its descriptors
    // would be, too, once it is killed.
    await nextTurn();
    await nextTurn();
    if (this.#isGone) return;
    this.#usage?.sampleLast();
    this.#usage?.unwatch();
    const command = killCommand(this.#children);
    // After the kill, so that nothing begins another process that is not counted.
    const used = this.#usage?.usage ?? unknownUsage;
    const isOver = command !== undefined && (used.hasCountedOne || this.#isLeftAlone(command));
    if (!isOver || isAwaited()) return this.#killAll();
    // Handlers of pthread_atfork(3) that an import has registered run there.
    signalQuietly(first, "SIGKILL");
    if (this.pid !== first) this.#child.kill("SIGKILL");
    this.#isEnding = true;
    const ending = this.#gone.then(ignore, ignore);
    this.#ending.resolve({ ...this.#reportOf(done, used), ending });
  }

  /** Whether nothing is left but processes of bubblewrap's and a command that was killed. */
  #isLeftAlone(command: number): boolean {
    const first = this.#report.childPid;
    if (first === undefined || !isAlone(command, first)) return false;
    return this.#usage?.hasOnly([this.pid, first, command]) ?? true;
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
    this.#exceeded ??= limit;
    this.#killAll();
  }

  /**
   * SIGTERM to the command: the children of the sandbox's first process, which itself ignores it.
   */
  #terminate(): void {
    const first = this.#report.childPid;
    if (first === undefined || this.#isGone) return;
    for (const pid of knownChildrenOf(first)) signalQuietly(pid, "SIGTERM");
  }

  /**
   * The end of a pid namespace's first process ends all the others (pid_namespaces(7)). Who cannot
   * be looked for, and so is not killed by number, is by the end of bubblewrap.
   */
  #killAll(): void {
    if (this.#isGone || this.#isEnding) return;
    const first = this.#report.childPid;
    if (first !== undefined) signalQuietly(first, "SIGKILL");
    // One that is born now would wait for bubblewrap for ever.
    else killWithChildren(this.#child);
    this.#usage?.kill();
    this.#child.kill("SIGKILL");
  }

  async #watch(reported: Promise<void>): Promise<ExitReport> {
    try {
      using _usage = this.#usage;
      await this.#started;
      this.#begin();
      const exit = await this.#child.exited;
      await reported;
      const first = this.#report.childPid;
      if (first !== undefined) await awaitEnd(first, this.#clock, this.#isEnding);
      this.#isGone = true;
      await awaitOutput(this.#child, this.#clock);
      if (this.#failure !== undefined) throw this.#failure;
      return this.#reportOf(this.#isDone ? done : ending(this.#report, exit));
    } finally {
      this.#isWatched = false;
      this.#children?.[Symbol.dispose]();
      // Nobody waits for that.
      setImmediate(() => this.#child.close());
    }
  }

  #reportOf(
    end: Pick<ExitReport, "started" | "exitCode" | "signal">,
    used = this.#usage?.usage ?? unknownUsage,
  ): ExitReport {
    const { cpuMs, peakMemoryBytes, peakProcesses } = used;
    return {
      ...end,
      result: this.#callEnd?.result,
      exceeded: this.#exceeded ?? this.#endedByKernel(end, used),
      usage: {
        wallMs: this.#clock.monotonicMs() - this.#startMs,
        cpuMs,
        peakMemoryBytes,
        peakProcesses,
      },
      ...this.#child.output(),
    };
  }

  /** Samples the sandbox from the birth of its first process on. */
  #begin(): void {
    const first = this.#report.childPid;
    if (first === undefined) return;
    this.#usage?.begin(first, {
      onExceeded: (limit) => {
        if (!this.#isGone) this.end(limit);
      },
      onFailed: (error) => {
        this.#failure = new SandboxError("the usage of a sandbox cannot be sampled", {
          cause: error,
        });
        this.#killAll();
      },
    });
  }

  /** What we end ourselves says nothing by its signal. */
  #endedByKernel(
    { signal }: Pick<ExitReport, "signal">,
    usage: TotalUsage,
  ): LimitReached | undefined {
    if (this.#usage === undefined || this.#stopping.isAsked) return undefined;
    return limitOfSignal(signal, this.#usage.limits, usage);
  }
}

const ignore = (): void => undefined;

/** How a command ended that was killed in place of its exit. */
const done = { started: true, exitCode: 0, signal: undefined } as const;

const unknownUsage: TotalUsage = {
  cpuMs: undefined,
  peakMemoryBytes: undefined,
  peakProcesses: undefined,
  memoryKills: 0,
  hasCountedOne: false,
};
