/**
 * The audit log contract: which user's calls ran, which artifacts they read, saved and deleted, and
 * which hosts they reached.
 */
import type { AuditEvent } from "./event.ts";

/** An audit log. Disposing writes the waiting lines within a limit, and reports those left. */
export interface AuditLog extends AsyncDisposable {
  /** Records an event. Never fails or waits: a line waits in memory for a log that fails. */
  record(event: AuditEvent): void;
  /**
   * Records an event before it takes effect. Resolves once the line is written, or cannot be; where
   * the log is required, the latter rejects with AuditError. Rejects with the signal's reason.
   */
  require(event: AuditEvent, signal: AbortSignal): Promise<void>;
  /** Why no call may start; empty unless the log is required and cannot be written. */
  readonly notReadyReasons: readonly string[];
  /** Why lines wait or are lost while calls run, for the operator. */
  readonly warnings: readonly string[];
}

/** The audit log cannot be written. `message` is public; the log of the worker has the cause. */
export class AuditError extends Error {
  constructor(cause: unknown) {
    super("The worker's audit log cannot be written.", { cause });
    this.name = "AuditError";
  }
}
