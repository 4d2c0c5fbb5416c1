/**
 * Facts of a call that its outcome reports, whether the call succeeds or fails.
 */
import type { ToolEntry } from "../manifest/manifest.ts";
import {
  type ExecutionReport,
  type GatewayReport,
  type ToolOutput,
  enforcedLimits,
} from "../protocol/execution.ts";
import type { CreatedArtifact, Invocation } from "../protocol/invocation.ts";
import { type LimitReached, limitFacts } from "../protocol/resource-limits.ts";
import type { Profile } from "../sandbox/profile.ts";
import type { ExitReport } from "../sandbox/sandbox.ts";
import type { ToolSandbox } from "../pool/starts.ts";
import { type CallFollower, type CallStep, followsNothing } from "../telemetry/call-follower.ts";

/** What is known of a run that has ended. */
interface EndedRun extends Pick<ExitReport, "usage"> {
  /** Undefined for a tool without a gateway. */
  readonly calls: GatewayReport | undefined;
  /** For the caller; undefined where callers get none. */
  readonly output: ToolOutput | undefined;
}

/** The invoker fills it step by step, and tells the follower of the call on the way. */
export class CallRecord {
  /** Whether the tool's process may have run. */
  started = false;
  /** Whether the manifest allows a second run after the first has started, on any worker. */
  idempotent = true;
  /** Report on the sandbox, after its end. */
  execution: ExecutionReport | undefined;

  readonly #follower: CallFollower;

  constructor(follower: CallFollower = followsNothing) {
    this.#follower = follower;
  }

  resolved({ idempotent }: Pick<ToolEntry, "idempotent">): void {
    this.idempotent = idempotent;
  }

  under({ name }: Pick<Profile, "name">): void {
    this.#follower.under(name);
  }

  enter(step: CallStep): void {
    this.#follower.enter(step);
  }

  /** The call with the trace context that its tool gets. */
  traced(invocation: Invocation): Invocation {
    const { trace } = this.#follower;
    return trace ? { ...invocation, traceparent: trace.traceparentOf("run") } : invocation;
  }

  /** Call right before the tool's process may run. */
  begin(): void {
    this.started = true;
  }

  /** Call when the tool is about to have another one run. */
  called(isIdempotent: boolean): void {
    this.idempotent &&= isIdempotent;
  }

  /** Call after the last process of the sandbox has ended. */
  ended(
    profile: Profile,
    { startMode, sandbox }: Pick<ToolSandbox, "startMode" | "sandbox">,
    timeLimitMs: number,
    { usage, calls, output }: EndedRun,
  ): void {
    this.execution = {
      profile: profile.name,
      backend: sandbox.backend,
      start: startMode,
      limits: sandbox.limits,
      enforcedBy: sandbox.enforcement,
      timeLimitMs,
      unenforced: sandbox.unenforced,
      usage: { ...usage, outputBytes: 0 },
      network: sandbox.networkUsage,
      output,
      calls,
    };
    const { start, backend, unenforced } = this.execution;
    const { cpuMs, peakMemoryBytes } = usage;
    const limits = enforcedLimits(this.execution);
    this.#follower.ran({ start, backend, limits, unenforced, cpuMs, peakMemoryBytes });
  }

  /** Call for the limit that ended the sandbox. */
  exceeded({ limit }: LimitReached): void {
    this.#follower.limitReached(limitFacts[limit].word);
  }

  /** The report as it will be once these outputs are saved. */
  executionWith(
    outputs: readonly Pick<CreatedArtifact, "sizeBytes">[],
  ): ExecutionReport | undefined {
    if (this.execution === undefined) return undefined;
    const outputBytes = outputs.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
    return { ...this.execution, usage: { ...this.execution.usage, outputBytes } };
  }

  /** Call after the outputs are saved. */
  collected(artifacts: readonly CreatedArtifact[]): void {
    this.execution = this.executionWith(artifacts);
  }
}
