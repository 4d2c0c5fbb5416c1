/**
 * Opens the audit log of a worker or of a check, from a configuration.
 */
import { type Config, ConfigError } from "../../config/config.ts";
import type { AuditLog } from "../../telemetry/audit/audit.ts";
import { openAuditLog } from "../../telemetry/audit/open.ts";
import type { Host } from "../host.ts";

/** Undefined without `AUDIT_LOG`. Throws ConfigError for a required log that cannot be opened. */
export async function openAudit(
  { audit, workerId }: Config,
  { clock, log }: Pick<Host, "clock" | "log">,
): Promise<AuditLog | undefined> {
  if (audit === undefined) return undefined;
  const parts = { workerId, clock, log: log.child({ part: "audit" }) };
  return await openAuditLog(audit, parts).catch((error: unknown) => {
    throw new ConfigError([
      `AUDIT_LOG: cannot be opened, and AUDIT_REQUIRED is 1: ${String(error)}`,
    ]);
  });
}
