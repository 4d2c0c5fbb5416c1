/**
 * Log events of the console.
 */
import type { LogEvent } from "./event.ts";

/** By name. */
export const consoleEvents = {
  "console.listening": {
    level: "info",
    message: "console listens",
    facts: { url: "text" },
    when: "The [console](console.md) is open. Without `CONSOLE_TOKEN`, `url` holds the token that the worker made: who reads the log of this worker can use its console.",
  },
  "console.cancelled": {
    level: "info",
    message: "console cancelled a call",
    facts: { tool: "text?", correlationId: "text?" },
    when: "A user of the console has cancelled a call, which is answered `CANCELLED`.",
  },
  "console.request_failed": {
    level: "warn",
    message: "console request failed",
    facts: { err: "error" },
    when: "The console could not answer a request of its page.",
    action: "Report a defect, unless `err` names a cause such as a full disk.",
  },
} as const satisfies Record<string, LogEvent>;
