/**
 * Opens the audit log of a configuration.
 */
import type { AuditLog } from "./audit.ts";
import { QueuedAuditLog, type QueuedLogParts } from "./queued-log.ts";
import { FileSink, StdoutSink } from "./sinks.ts";

/** Where the audit log is, and whether calls need it. */
export interface AuditConfig {
  readonly target: { readonly kind: "stdout" } | { readonly kind: "file"; readonly path: string };
  readonly isRequired: boolean;
}

/**
 * Opens the log. A file that cannot be opened is reported and tried again; if the log is required,
 * rejects with the error of the system. The caller owns the log.
 */
export async function openAuditLog(
  { target, isRequired }: AuditConfig,
  parts: Omit<QueuedLogParts, "sink" | "isRequired">,
): Promise<AuditLog> {
  if (target.kind === "stdout") {
    return new QueuedAuditLog({ ...parts, isRequired, sink: new StdoutSink() });
  }
  const sink = new FileSink(target.path);
  const opened = new QueuedAuditLog({ ...parts, isRequired, sink });
  await sink.open().catch((error: unknown) => {
    if (isRequired) throw error;
    opened.fail(error);
  });
  return opened;
}
