/**
 * One container: started, watched until its end, stopped.
 */
import type { Duplex, Readable, Writable } from "node:stream";
import type { LimitReached } from "../../protocol/resource-limits.ts";
import type { Clock } from "../../support/clock.ts";
import { settlesWithin } from "../../support/timeout.ts";
import { limitOfSignal } from "../accounting/exit-reason.ts";
import type { SandboxUsage } from "../accounting/sandbox-usage.ts";
import { signalOfExitCode } from "../proc/signals.ts";
import { type Execution, type ExitReport, SandboxError } from "../sandbox.ts";
import { Stopping } from "../stopping.ts";
import { OutputTail } from "../subprocess.ts";
import type { Engine } from "./engine/containers.ts";
import { type Outputs, readOutputs } from "./engine/output.ts";
import { isOfContainer } from "./usage.ts";

/** Milliseconds in which a killed container has to end. */
const killTimeoutMs = 30_000;
/** Milliseconds that reading the rest of the output may take when the container has ended. */
const outputGraceMs = 2_000;

/** What an execution is made of; it owns all but the engine and the clock. */
export interface ExecutionParts {
  readonly engine: Engine;
  readonly clock: Clock;
  /** The container's id. */
  readonly id: string;
  /** Attached before the start. */
  readonly connection: Duplex;
  readonly hasStdin: boolean;
  readonly gateway: Duplex | undefined;
  readonly usage: SandboxUsage;
  /** Removes the container. */
  remove(): void;
}

/** A container that has been started. */
export class ContainerExecution implements Execution {
  readonly exited: Promise<ExitReport>;
  /** Whether the worker sees the container's processes. */
  readonly isSeen: Promise<boolean>;
  readonly #parts: ExecutionParts;
  readonly #outputs: Outputs;
  readonly #stdout: OutputTail;
  readonly #stderr: OutputTail;
  readonly #stopping: Stopping;
  readonly #over = new AbortController();
  readonly #startMs: number;
  #isGone = false;
  #exceeded: LimitReached | undefined;

  /** @param startMs when its start was asked for, by the monotonic clock */
  constructor(parts: ExecutionParts, startMs: number) {
    this.#parts = parts;
    this.#startMs = startMs;
    this.#outputs = readOutputs(parts.connection);
    this.#stdout = new OutputTail(this.#outputs.stdout);
    this.#stderr = new OutputTail(this.#outputs.stderr);
    this.isSeen = this.#begin().catch(() => false);
    this.exited = this.#watch();
    this.#stopping = new Stopping(
      {
        exited: this.exited,
        started: () => Promise.resolve(),
        terminate: () => this.#signal("SIGTERM"),
        kill: () => this.#kill(),
      },
      parts.clock,
    );
  }

  get stdin(): Writable | undefined {
    return this.#parts.hasStdin ? this.#parts.connection : undefined;
  }

  get gateway(): Duplex | undefined {
    return this.#parts.gateway;
  }

  get stdout(): Readable {
    return this.#stdout.stream;
  }

  get stderr(): Readable {
    return this.#stderr.stream;
  }

  stop(graceMs: number): Promise<ExitReport> {
    return this.#stopping.stop(graceMs);
  }

  end(limit: LimitReached): void {
    if (this.#isGone) return;
    this.#exceeded ??= limit;
    this.#kill();
  }

  #signal(name: "SIGTERM" | "SIGKILL"): void {
    const { engine, id } = this.#parts;
    // A kill that fails is seen by the container, which goes on.
    if (!this.#isGone) void engine.kill(id, name, this.#over.signal).catch(() => undefined);
  }

  #kill(): void {
    if (this.#isGone) return;
    this.#signal("SIGKILL");
    const { clock, id } = this.#parts;
    void clock.sleep(killTimeoutMs, this.#over.signal).then(
      () => this.#over.abort(new SandboxError(`the container ${id} cannot be killed`)),
      () => undefined,
    );
  }

  /** Samples the container's processes, where they are this host's. */
  async #begin(): Promise<boolean> {
    const { engine, id, usage } = this.#parts;
    const state = await engine.inspect(id, this.#over.signal).catch(() => undefined);
    const pid = state?.pid ?? 0;
    if (pid === 0 || !(await isOfContainer(pid, id)) || this.#isGone) return false;
    await usage.enter(pid);
    usage.begin(pid, {
      onExceeded: (limit) => this.end(limit),
      onFailed: (cause) => {
        this.#over.abort(new SandboxError("the usage of a sandbox cannot be sampled", { cause }));
      },
    });
    return true;
  }

  async #watch(): Promise<ExitReport> {
    const { engine, id, usage, clock, connection, gateway, remove } = this.#parts;
    try {
      void this.#outputs.ended.then(() => usage.sampleLast());
      const exitCode = await engine.wait(id, this.#over.signal);
      const wallMs = clock.monotonicMs() - this.#startMs;
      this.#isGone = true;
      const [{ wasOutOfMemory }] = await Promise.all([
        engine.inspect(id, this.#over.signal),
        settlesWithin(this.#outputs.ended, outputGraceMs, clock),
      ]);
      const signal = signalOfExitCode(exitCode);
      const used = usage.usage;
      const { cpuMs, peakMemoryBytes, peakProcesses } = used;
      const memoryKills = Math.max(used.memoryKills, Number(wasOutOfMemory));
      return {
        started: true,
        exitCode: signal === undefined ? exitCode : undefined,
        signal,
        exceeded: this.#exceeded ?? this.#endedByKernel(signal, { ...used, memoryKills }),
        usage: { wallMs, cpuMs, peakMemoryBytes, peakProcesses },
        stdout: this.#stdout.read(),
        stderr: this.#stderr.read(),
      };
    } finally {
      this.#isGone = true;
      this.#over.abort();
      usage[Symbol.dispose]();
      gateway?.destroy();
      connection.destroy();
      remove();
    }
  }

  /** What the worker ends itself says nothing by its signal. */
  #endedByKernel(
    signal: string | undefined,
    used: SandboxUsage["usage"],
  ): LimitReached | undefined {
    if (this.#stopping.isAsked) return undefined;
    return limitOfSignal(signal, this.#parts.usage.limits, used);
  }
}
