/**
 * The catalogue of the log: every event that the worker logs, in the order of the table in
 * docs/operate.md.
 */
import { brokerEvents } from "./events/broker.ts";
import { callEvents } from "./events/calls.ts";
import { deliveryEvents } from "./events/deliveries.ts";
import { toolEvents } from "./events/tools.ts";
import { endEvents, startEvents } from "./events/worker.ts";

/** Every event by its name. Names are stable; sentences may be reworded. */
export const events = {
  ...startEvents,
  ...brokerEvents,
  ...toolEvents,
  ...callEvents,
  ...deliveryEvents,
  ...endEvents,
};

type Events = typeof events;

/** The name of an event. */
export type EventName = keyof Events;

/** The level that an event is logged at. */
export type LevelOf<Name extends EventName> = Events[Name]["level"];

/** A fact that a line of an event may have. */
export type FieldOf<Name extends EventName> = Events[Name]["fields"][number];

/** Facts of a line of an event. */
export type FactsOf<Name extends EventName> = { readonly [Field in FieldOf<Name>]?: unknown };
