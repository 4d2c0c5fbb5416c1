/**
 * What is known of a call so far: for whoever answers it, also when it does not get to its end.
 */
import type { ToolEntry } from "../manifest/manifest.ts";
import type { ExecutionReport } from "../protocol/execution.ts";
import type { CreatedArtifact } from "../protocol/invocation.ts";
import type { Profile } from "../sandbox/profile.ts";
import type { ExitReport } from "../sandbox/sandbox.ts";
import type { ToolSandbox } from "../pool/starts.ts";

/** Filled in by the invoker as it goes. */
export class CallRecord {
  /** Whether the tool's process may have run. */
  started = false;
  /** Whether the manifest lets the call run once more after it has started, here or elsewhere. */
  idempotent = true;
  /** The sandbox that ran for it, when it has ended. */
  execution: ExecutionReport | undefined;

  /** To be called when the tool of the call is known. */
  resolved({ idempotent }: Pick<ToolEntry, "idempotent">): void {
    this.idempotent = idempotent;
  }

  /** To be called right before the tool's process may run. */
  begin(): void {
    this.started = true;
  }

  /** To be called when no process of the sandbox is alive. */
  ended(
    profile: Profile,
    { startMode, sandbox }: Pick<ToolSandbox, "startMode" | "sandbox">,
    timeLimitMs: number,
    report: ExitReport,
  ): void {
    this.execution = {
      profile: profile.name,
      backend: sandbox.backend,
      start: startMode,
      limits: sandbox.limits,
      enforcedBy: sandbox.enforcement,
      timeLimitMs,
      unenforced: sandbox.unenforced,
      usage: { ...report.usage, outputBytes: 0 },
    };
  }

  /** What will be known of the execution when these outputs are saved. */
  executionWith(
    outputs: readonly Pick<CreatedArtifact, "sizeBytes">[],
  ): ExecutionReport | undefined {
    if (this.execution === undefined) return undefined;
    const outputBytes = outputs.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
    return { ...this.execution, usage: { ...this.execution.usage, outputBytes } };
  }

  /** To be called when the outputs are saved. */
  collected(artifacts: readonly CreatedArtifact[]): void {
    this.execution = this.executionWith(artifacts);
  }
}
