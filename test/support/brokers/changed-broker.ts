/**
 * Brokers that are real but for a member of their sessions, for moments that tests cannot hit from
 * outside.
 */
import type { Broker, BrokerSession } from "../../../worker/broker/broker.ts";

/** The broker, with what `change` gives in the place of members of each session. */
export function withSessions(
  broker: Broker,
  change: (session: BrokerSession) => Partial<BrokerSession>,
): Broker {
  return {
    kind: broker.kind,
    async connect(...given) {
      const session = await broker.connect(...given);
      return {
        redelivers: session.redelivers,
        deliveries: session.deliveries,
        closed: session.closed,
        serve: (...given) => session.serve(...given),
        leave: (...given) => session.leave(...given),
        subscribe: (...given) => session.subscribe(...given),
        publish: (...given) => session.publish(...given),
        pause: () => session.pause(),
        [Symbol.asyncDispose]: () => session[Symbol.asyncDispose](),
        ...change(session),
      };
    },
  };
}

/**
 * The broker, whose connection is broken by `breakConnection` once it has confirmed the first
 * answer, which is then not settled. Of what a worker publishes, only answers are retried.
 */
export function breakingAfterAnswer(broker: Broker, breakConnection: () => void): Broker {
  let hasBroken = false;
  return withSessions(broker, (session) => ({
    async publish(message, signal) {
      const outcome = await session.publish(message, signal);
      if (message.isRetried !== true || hasBroken) return outcome;
      hasBroken = true;
      breakConnection();
      return outcome;
    },
  }));
}

/** The broker, whose connection is broken by `breakConnection` before it gets the first answer. */
export function breakingBeforeAnswer(broker: Broker, breakConnection: () => void): Broker {
  let hasBroken = false;
  return withSessions(broker, (session) => ({
    publish(message, signal) {
      if (message.isRetried === true && !hasBroken) {
        hasBroken = true;
        breakConnection();
      }
      return session.publish(message, signal);
    },
  }));
}

/** The broker, whose connections after the first are made when the gate opens. */
export function reconnectingAfter(broker: Broker, gate: Promise<void>): Broker {
  let connections = 0;
  return {
    kind: broker.kind,
    async connect(...given) {
      if (connections++ > 0) await gate;
      return broker.connect(...given);
    },
  };
}

/** The broker, which calls `onDelivery` for each delivery that it hands out. */
export function tellingOfDeliveries(broker: Broker, onDelivery: () => void): Broker {
  async function* told({ deliveries }: BrokerSession) {
    for await (const delivery of deliveries) {
      onDelivery();
      yield delivery;
    }
  }
  return withSessions(broker, (session) => ({ deliveries: told(session) }));
}
