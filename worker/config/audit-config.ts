/**
 * The variables of the audit log, and its configuration.
 */
import { z } from "zod";
import type { AuditConfig } from "../telemetry/audit/open.ts";
import { absolutePath, optional, withDefault } from "./variable-kinds.ts";

/** In the order of the documentation. */
export const auditVariables = {
  AUDIT_LOG: optional(
    z.union([z.literal("stdout"), absolutePath]),
    "an absolute path, or `stdout`",
    "File for the [audit log](audit.md): calls, the artifacts that they read and save, and the connections that `public` or a list of hosts allows or refuses. Unset: none.",
  ),
  AUDIT_REQUIRED: withDefault(
    z.enum(["0", "1"]),
    "0 or 1",
    "0",
    "With 1, calls fail while the audit log cannot be written, and the worker does not start without it.",
  ),
};

/** Problems with the combination of the variables, one line each. */
export function auditProblems(
  environment: Readonly<Record<string, string | undefined>>,
): readonly string[] {
  if (environment["AUDIT_REQUIRED"] !== "1" || environment["AUDIT_LOG"] !== undefined) return [];
  return ["AUDIT_REQUIRED: needs AUDIT_LOG"];
}

/** Undefined without an audit log. */
export function auditConfig(
  values: z.infer<z.ZodObject<typeof auditVariables>>,
): AuditConfig | undefined {
  const { AUDIT_LOG: path, AUDIT_REQUIRED } = values;
  if (path === undefined) return undefined;
  const isRequired = AUDIT_REQUIRED === "1";
  return { target: path === "stdout" ? { kind: "stdout" } : { kind: "file", path }, isRequired };
}
