/**
 * Log events of the served runtime.
 */
import type { LogEvent } from "./event.ts";

/** By name. */
export const runtimeEvents = {
  "runtime.listening": {
    level: "info",
    message: "runtime listens",
    facts: { url: "text", hasToken: "boolean" },
    when: "Programs can [execute code](runtime-remote.md) at `url`. `hasToken`: they need `RUNTIME_TOKEN`.",
  },
  "runtime.failed": {
    level: "warn",
    message: "runtime failed",
    facts: { err: "error" },
    when: "An execution of a program failed for another reason than its code and its request.",
    action: "Report a defect, unless `err` names a cause such as a full disk.",
  },
} as const satisfies Record<string, LogEvent>;
