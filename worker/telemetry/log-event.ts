/**
 * The one way into the log: by an event of the catalogue.
 */
import {
  type BareEventName,
  type EventName,
  type FactOf,
  type FactsOf,
  type LevelOf,
  events,
} from "./events.ts";
import type { EventLevel } from "./events/event.ts";

/** Where events of some levels go; a pino logger fits. */
export type EventLog<Level extends EventLevel = EventLevel> = {
  readonly [Each in Level]: (facts: object, message: string) => void;
};

/**
 * Logs an event at its level: its name as the fact `event`, its sentence as the message.
 *
 * @param facts those that the catalogue requires and allows, and no others
 */
export function logEvent<Name extends BareEventName>(
  log: EventLog<LevelOf<Name>>,
  event: Name,
): void;
export function logEvent<Name extends EventName, Facts extends FactsOf<Name>>(
  log: EventLog<LevelOf<Name>>,
  event: Name,
  facts: Facts & Readonly<Record<Exclude<keyof Facts, FactOf<Name>>, never>>,
): void;
export function logEvent<Name extends EventName>(
  log: EventLog<LevelOf<Name>>,
  event: Name,
  facts?: object,
): void {
  const level: LevelOf<Name> = events[event]["level"];
  log[level]({ event, ...facts }, events[event].message);
}
