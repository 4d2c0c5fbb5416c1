/**
 * Wires the consumer and the handler, from a session's deliveries to their settlement.
 */
import type { Foundation, Host } from "./app.ts";
import type { BrokerSession } from "./broker/broker.ts";
import type { Config } from "./config/config.ts";
import { Answers } from "./invocation/answers.ts";
import type { CallSignals } from "./invocation/call.ts";
import { Consumer, maxDeliveriesInFlight } from "./invocation/consumer.ts";
import { receiveDelivery } from "./invocation/handler.ts";
import type { Invoker } from "./invocation/invoker.ts";
import { Ledger } from "./invocation/claims/ledger.ts";
import { TopicTools } from "./invocation/read-request.ts";
import { openClaims } from "./invocation/claims/shared-claims.ts";
import { Semaphore } from "./support/semaphore.ts";

/** Threads that parse large requests. The consumer bounds the requests that wait for a thread. */
const maxParserThreads = 2;

/** A consumer that has not started. The caller disposes it after the last call. */
export interface WiredConsumer extends AsyncDisposable {
  readonly consumer: Consumer;
}

/** Dependencies of the consumer. */
export interface ConsumerParts {
  readonly host: Host;
  readonly foundation: Foundation;
  readonly session: BrokerSession;
  readonly invoker: Invoker;
  readonly signals: CallSignals;
}

/** Wires the consumer of a session. The caller runs it, and disposes the result. */
export function wireConsumer(
  config: Config,
  { host, foundation, session, invoker, signals }: ConsumerParts,
): WiredConsumer {
  const { clock, log } = host;
  const { catalog, store } = foundation;
  const { namespace, maxRuns, sandbox, queues } = config;
  const marking = { clock, log: log.child({ part: "claims" }) };
  const claims = openClaims(store.marks, session, marking);
  const ledger = new Ledger(clock);
  const parts = {
    namespace,
    session,
    ledger,
    claims,
    maxRuns,
    invoker,
    clock,
    log,
    answers: new Answers(session, log),
    topicTools: new TopicTools(namespace, log),
    largeRequests: new Semaphore({ capacity: maxParserThreads, maxWaiting: Infinity }),
    resolve: (tool: string) => catalog.resolve(tool),
    unavailable: (tool: string) => catalog.unavailable(tool),
  };
  const callLimits = { ...sandbox, maxQueued: sandbox.maxQueued * queues.size };
  const consumer = new Consumer(
    session,
    (delivery) => receiveDelivery(parts, delivery, signals),
    maxDeliveriesInFlight(callLimits, session.redelivers),
  );
  return { consumer, [Symbol.asyncDispose]: () => claims[Symbol.asyncDispose]() };
}
