/**
 * The log of a backend of the library: a worker's events, told to the user's logger.
 */
import type { RuntimeLogger } from "../../runtime/api/runtime.ts";
import { type Logger, createLogger } from "../../telemetry/logger.ts";

/** A worker's levels by methods of a logger; lower levels are not told. */
const methods: Readonly<Record<string, keyof RuntimeLogger>> = {
  ...{ info: "info", warn: "warn", error: "error", fatal: "error" },
};

/** Standard error, from `level` on, without a logger. */
export function backendLog(logger: RuntimeLogger | undefined, level: "warn" | "error"): Logger {
  if (logger === undefined) return createLogger(level, process.stderr.fd);
  // Lines rather than calls, so that the redaction of the log holds.
  return createLogger("info", { write: (line) => tell(logger, line) });
}

function tell(to: RuntimeLogger, line: string): void {
  const { level, msg = "", ...facts } = JSON.parse(line) as Record<string, string>;
  try {
    to[methods[level ?? ""] ?? "info"](msg, facts);
  } catch {
    // An execution does not depend on the log.
  }
}
