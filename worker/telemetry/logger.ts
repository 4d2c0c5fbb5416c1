/**
 * The log: pino with one redaction list.
 */
import type { Writable } from "node:stream";
import { type DestinationStream, type Logger as PinoLogger, pino } from "pino";
import type { EventLog } from "./log-event.ts";
import { prettyDestination } from "./pretty-log.ts";

/**
 * A logger, written to by `logEvent` alone. Keys are camelCase with units; errors go under `err`.
 */
export interface Logger extends EventLog {
  readonly level: string;
  isLevelEnabled(level: string): boolean;
  /** The same log, whose lines have these facts as well. */
  child(facts: object, options?: { readonly level: string }): Logger;
}

/** Levels that can be configured. */
export const logLevels = ["trace", "debug", "info", "warn", "error", "fatal", "silent"] as const;

/** How a line of the log can look. */
export const logFormats = ["auto", "json", "pretty"] as const;

/**
 * Paths whose values never reach the log at any level: at the top of what is logged, or up to two
 * levels below.
 */
export const redactedPaths: readonly string[] = [
  ...["password", "token", "secret", "authToken", "toolConfig", "tool_config"].flatMap((name) => [
    name,
    `*.${name}`,
    `*.*.${name}`,
  ]),
  ...[
    "args",
    "params.args",
    "invocation.args",
    "env",
    "headers.authorization",
    "properties.authToken",
  ],
];

/**
 * Where lines go: as they are, or made for people where the format says so or a terminal shows
 * them.
 */
export function logDestination(
  stream: Writable & { readonly isTTY?: boolean; readonly fd?: number },
  format: (typeof logFormats)[number],
  level: (typeof logLevels)[number],
): DestinationStream | number {
  const isPretty = format === "pretty" || (format === "auto" && stream.isTTY === true);
  const isVerbose = level === "debug" || level === "trace";
  return isPretty ? prettyDestination(stream, isVerbose) : (stream.fd ?? stream);
}

/**
 * Creates the root logger: JSON lines, with time as ISO text.
 *
 * @param destination a stream, or a descriptor that is written without delay, so that nothing is
 *   lost at an exit
 */
export function createLogger(
  level: (typeof logLevels)[number],
  destination: DestinationStream | number,
): PinoLogger {
  return pino(
    {
      level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      redact: { paths: [...redactedPaths], censor: "[redacted]" },
    },
    typeof destination === "number"
      ? pino.destination({ fd: destination, sync: true })
      : destination,
  );
}
