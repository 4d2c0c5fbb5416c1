/**
 * A broker whose connection breaks at the one moment that tests cannot hit from outside: after an answer, before its settlement.
 */
import type { Broker } from "../../worker/broker/broker.ts";

/** The broker, whose connection is broken by `breakConnection` once it has confirmed the first message. */
export function breakingAfterAnswer(broker: Broker, breakConnection: () => void): Broker {
  let hasBroken = false;
  return {
    kind: broker.kind,
    async connect(tools, signal) {
      const session = await broker.connect(tools, signal);
      return {
        redelivers: session.redelivers,
        deliveries: session.deliveries,
        closed: session.closed,
        serve: (...given) => session.serve(...given),
        leave: (...given) => session.leave(...given),
        subscribe: (...given) => session.subscribe(...given),
        pause: () => session.pause(),
        async publish(...given) {
          const outcome = await session.publish(...given);
          if (!hasBroken) breakConnection();
          hasBroken = true;
          return outcome;
        },
        [Symbol.asyncDispose]: () => session[Symbol.asyncDispose](),
      };
    },
  };
}
