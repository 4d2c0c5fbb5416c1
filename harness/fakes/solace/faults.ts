/**
 * What a test can make the broker do wrong.
 */
import type { Login } from "./wire/client-control.ts";
import type { Response } from "./wire/params.ts";

/** A request is refused with a code and a text, or neither carried out nor answered. */
export type Fault = Response | "silence";

/** A message is refused, lost before the broker has it, or kept without a word to its publisher. */
export type PublishFault = Response | "lost" | "unconfirmed";

/** Each is asked about every request of its kind; undefined, as all are at first, lets it pass. */
export interface Faults {
  login?: ((login: Login) => Fault | undefined) | undefined;
  /** Asked about subscriptions of clients and of queues. */
  subscribe?: ((topic: string, queue: string | undefined) => Fault | undefined) | undefined;
  provision?: ((queue: string) => Fault | undefined) | undefined;
  bind?: ((queue: string) => Fault | undefined) | undefined;
  /** A bind is carried out at once, and answered when the promise fulfils. */
  answersBindAfter?: ((queue: string) => Promise<unknown> | undefined) | undefined;
  /** Asked about guaranteed messages. */
  publish?: ((topic: string, clientName: string) => PublishFault | undefined) | undefined;
  /** Leaves keep-alives unanswered, as a broker does whose host has vanished. */
  mutesKeepAlives?: boolean;
  /**
   * Hands out what was in flight under new ids to a consumer that comes back, as after a fail-over
   * to another broker. The client's library then cannot tell that it has it already.
   */
  forgetsConsumers?: boolean;
  /**
   * Knows no publisher that comes back, whose library then publishes anew what has no confirmation.
   */
  forgetsPublishers?: boolean;
}

/** The words of a real broker, from which client libraries tell the cause. */
export const refusals = {
  alreadyExists: { code: 400, text: "Already Exists" },
  clientNameInUse: { code: 403, text: "Client Name Already In Use" },
  invalidName: { code: 400, text: "Invalid Name" },
  maxClientsForQueue: { code: 503, text: "Max clients exceeded for queue" },
  maxMessageSize: { code: 400, text: "Document Is Too Large" },
  maxSubscriptions: { code: 503, text: "Max Subscriptions Exceeded" },
  noSubscriptionMatch: { code: 503, text: "No Subscription Match" },
  permission: { code: 403, text: "Permission Not Allowed" },
  replayStarted: { code: 503, text: "Replay Started" },
  queueShutdown: { code: 503, text: "Queue Shutdown" },
  serviceUnavailable: { code: 503, text: "Service Unavailable" },
  subscriptionExists: { code: 400, text: "Subscription Already Exists" },
  subscriptionNotFound: { code: 400, text: "Subscription Not Found" },
  spoolOverQuota: { code: 503, text: "Spool Over Quota" },
  tooManyClients: { code: 503, text: "Too Many Clients" },
  tooManyQueues: { code: 503, text: "Max Num Queues Exceeded" },
  unknownFlowName: { code: 400, text: "Unknown Flow Name" },
  unknownQueue: { code: 503, text: "Unknown Queue" },
} as const satisfies Readonly<Record<string, Response>>;
