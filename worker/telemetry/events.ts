/**
 * The catalogue of the log: every event that the worker logs, in the order of the table in
 * docs/events.md.
 */
import { auditEvents } from "./events/audit.ts";
import { brokerEvents } from "./events/broker.ts";
import { callEvents } from "./events/calls.ts";
import { consoleEvents } from "./events/console.ts";
import { deliveryEvents } from "./events/deliveries.ts";
import type { FactTypes } from "./events/event.ts";
import { packageEvents } from "./events/packages.ts";
import { runtimeEvents } from "./events/runtime.ts";
import { toolEvents } from "./events/tools.ts";
import { endEvents, startEvents } from "./events/worker.ts";

/** Every event by its name. Names are stable; sentences may be reworded. */
export const events = {
  ...startEvents,
  ...brokerEvents,
  ...toolEvents,
  ...packageEvents,
  ...callEvents,
  ...deliveryEvents,
  ...auditEvents,
  ...consoleEvents,
  ...runtimeEvents,
  ...endEvents,
};

type Events = typeof events;

/** The name of an event. */
export type EventName = keyof Events;

/** The level that an event is logged at. */
export type LevelOf<Name extends EventName> = Events[Name]["level"];

/** A fact that a line of an event may have. */
export type FactOf<Name extends EventName> = keyof Events[Name]["facts"];

/** A fact that every line of an event has. */
type RequiredFactOf<Name extends EventName> = {
  [Fact in FactOf<Name>]: Events[Name]["facts"][Fact] extends keyof FactTypes ? Fact : never;
}[FactOf<Name>];

type TypeOf<Kind> = Kind extends keyof FactTypes
  ? FactTypes[Kind]
  : Kind extends `${infer Plain extends keyof FactTypes}?`
    ? FactTypes[Plain]
    : never;

/** Facts of a line of an event. */
export type FactsOf<Name extends EventName> = {
  readonly [Fact in RequiredFactOf<Name>]: TypeOf<Events[Name]["facts"][Fact]>;
} & {
  readonly [Fact in Exclude<FactOf<Name>, RequiredFactOf<Name>>]?:
    TypeOf<Events[Name]["facts"][Fact]> | undefined;
};

/** The name of an event that may be logged without facts. */
export type BareEventName = {
  [Name in EventName]: RequiredFactOf<Name> extends never ? Name : never;
}[EventName];
