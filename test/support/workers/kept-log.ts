/** What tests read of a log: the events, by their names. */
import type { EventName } from "../../../worker/telemetry/events.ts";
import type { EventLog } from "../../../worker/telemetry/log-event.ts";

export interface KeptLine {
  readonly event: string;
  readonly facts: object;
}

/** A log that keeps its lines. */
export interface KeptLog extends EventLog<"debug" | "info" | "warn" | "error"> {
  /** In order. */
  readonly lines: readonly KeptLine[];
  /** The names of the lines' events. */
  readonly events: readonly string[];
  /** The facts of each line of an event. */
  factsOf(event: EventName): readonly object[];
}

/** The facts of each line of an event, from lines of the worker's log. */
export function loggedFacts(
  logLines: readonly string[],
  event: EventName,
): readonly Readonly<Record<string, unknown>>[] {
  return logLines
    .map((line) => JSON.parse(line) as Record<string, unknown>)
    .filter((line) => line["event"] === event);
}

/** The name of the event that a line was logged by. */
export function eventOf(line: object): string {
  return (line as { readonly event: string }).event;
}

export function keptLog(): KeptLog {
  const lines: KeptLine[] = [];
  const keep = (line: object): void => {
    const { event, ...facts } = line as { readonly event: string };
    lines.push({ event, facts });
  };
  return {
    lines,
    get events() {
      return lines.map(({ event }) => event);
    },
    factsOf: (event) => lines.filter((line) => line.event === event).map(({ facts }) => facts),
    debug: keep,
    info: keep,
    warn: keep,
    error: keep,
  };
}
