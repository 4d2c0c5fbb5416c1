/**
 * A consumer of a queue, with the real library.
 */
import solace from "solclientjs";
import { bodyOf, descriptor, emitterOf, settled } from "./library.ts";
import { topic } from "./messages.ts";

const flowEvents = solace.MessageConsumerEventName;

/** A message of a queue. */
export interface Taken {
  readonly body: string;
  readonly deliveryCount: number | undefined;
  readonly isRedelivered: boolean;
  readonly message: solace.Message;
}

/** How a test settles a message. */
export type Outcome = "accepted" | "failed" | "rejected";

const outcomes: Readonly<Record<Outcome, solace.MessageOutcome>> = {
  accepted: solace.MessageOutcome.ACCEPTED,
  failed: solace.MessageOutcome.FAILED,
  rejected: solace.MessageOutcome.REJECTED,
};

/** A consumer of a queue. Its session closes it. */
export class Consumption {
  readonly consumer: solace.MessageConsumer;
  readonly taken: Taken[] = [];
  /** Names of its events, in order. */
  readonly told: string[] = [];

  private constructor(
    session: solace.Session,
    name: string,
    settle: (taken: Taken) => Outcome | undefined,
    windowSize: number,
  ) {
    this.consumer = session.createMessageConsumer(
      Object.assign(new solace.MessageConsumerProperties(), {
        queueDescriptor: descriptor(name),
        acknowledgeMode: solace.MessageConsumerAcknowledgeMode.CLIENT,
        requiredSettlementOutcomes: [outcomes.failed, outcomes.rejected],
        windowSize,
        transportAcknowledgeTimeoutInMsecs: 20,
        connectAttempts: 1,
        reconnectIntervalInMsecs: 50,
      }),
    );
    const emitter = emitterOf(this.consumer);
    for (const [event, code] of Object.entries(flowEvents)) {
      emitter.on(code, () => this.told.push(event));
    }
    emitter.on("error", () => {});
    emitter.on(flowEvents.MESSAGE, (message: solace.Message) => {
      const taken = {
        body: bodyOf(message),
        deliveryCount: message.getDeliveryCount(),
        isRedelivered: message.isRedelivered(),
        message,
      };
      this.taken.push(taken);
      const outcome = settle(taken);
      if (outcome !== undefined) message.settle(outcomes[outcome]);
    });
  }

  /** Rejects with PeerError. */
  static async open(
    session: solace.Session,
    name: string,
    settle: (taken: Taken) => Outcome | undefined,
    windowSize: number,
  ): Promise<Consumption> {
    const consumption = new Consumption(session, name, settle, windowSize);
    await consumption.connect();
    return consumption;
  }

  /** What was taken, in order. */
  get bodies(): readonly string[] {
    return this.taken.map(({ body }) => body);
  }

  /** Binds, for the first time or again. Rejects with PeerError. */
  async connect(): Promise<void> {
    const failures = [flowEvents.CONNECT_FAILED_ERROR];
    await settled(this.consumer, flowEvents.UP, failures, () => this.consumer.connect());
  }

  /** Waits for an event from now on. */
  next(name: solace.MessageConsumerEventName): Promise<unknown> {
    return new Promise((resolve) => emitterOf(this.consumer).once(name, resolve));
  }

  /** Has the queue attract a topic. Rejects with PeerError. */
  async addSubscription(name: string): Promise<void> {
    const failures = [flowEvents.SUBSCRIPTION_ERROR];
    await settled(this.consumer, flowEvents.SUBSCRIPTION_OK, failures, () =>
      this.consumer.addSubscription(topic(name), name, 10_000),
    );
  }

  async disconnect(): Promise<void> {
    const down = this.next(flowEvents.DOWN);
    this.consumer.disconnect();
    await down;
  }
}
