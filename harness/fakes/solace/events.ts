/**
 * What an observer of the broker can hear.
 */
import type { Settlement } from "../../../worker/broker/broker.ts";

/** Why a message was taken out of its queue without having been accepted. */
export type Death = "rejected" | "max-redeliveries" | "expired";

/** Events, each told after it happened. */
export interface SmfBrokerEvents {
  connected: [client: { readonly clientName: string; readonly username: string }];
  disconnected: [client: { readonly clientName: string }];
  /** A subscription is in force, of the client itself or of a queue. */
  subscribed: [
    subscription: {
      readonly clientName: string;
      readonly topic: string;
      readonly queue: string | undefined;
    },
  ];
  /** A client consumes from a queue. */
  bound: [flow: { readonly clientName: string; readonly queue: string }];
  /** It does no more: it unbound, was unbound, or left. */
  unbound: [flow: { readonly clientName: string; readonly queue: string }];
  /** A guaranteed message was confirmed or refused. */
  published: [
    message: {
      readonly clientName: string;
      readonly topic: string;
      readonly outcome: "confirmed" | "refused";
    },
  ];
  /** A message of a queue was handed out, for the `deliveryCount`th time. */
  delivered: [
    delivery: {
      readonly clientName: string;
      readonly queue: string;
      readonly topic: string;
      readonly deliveryCount: number;
    },
  ];
  settled: [
    settlement: {
      readonly clientName: string;
      readonly queue: string;
      readonly topic: string;
      readonly outcome: Settlement;
    },
  ];
  /** A message left its queue unaccepted; it is lost unless the dead message queue has it. */
  dead: [
    death: {
      readonly queue: string;
      readonly topic: string;
      readonly reason: Death;
      readonly isKept: boolean;
    },
  ];
  /** A direct message was dropped because a client reads too slowly. */
  discarded: [loss: { readonly clientName: string; readonly topic: string }];
}
