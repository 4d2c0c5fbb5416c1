/**
 * How the agent of a chaos connects to Solace, with the real library: a session for each
 * connection, since what the library sends again by itself would not say that there may be a copy
 * of it.
 */
import solace from "solclientjs";
import {
  type PeerEvent,
  descriptor,
  emitterOf,
  errorOf,
  settled,
} from "../../../integration/solace/library.ts";
import { makeMessage, topic } from "../../../integration/solace/messages.ts";
import type { AgentConnection, AgentDial, AgentInbox, RequestMessage } from "../agent.ts";

const { SDTFieldType, SessionEventCode: events } = solace;
const { MessageConsumerEventName: flowEvents } = solace;

/** Milliseconds for the broker to answer a request. */
const requestTimeoutMs = 10_000;

/** To a broker at this URL. */
export function solaceDial(url: string): AgentDial {
  return async (inbox) => {
    using stack = new DisposableStack();
    const session = stack.adopt(createSession(url), (opened) => opened.dispose());
    const emitter = emitterOf(session);
    const lost = Promise.withResolvers<void>();
    for (const down of [events.DOWN_ERROR, events.DISCONNECTED, "error"])
      emitter.on(down, () => lost.resolve());
    await settled(session, events.UP_NOTICE, [events.CONNECT_FAILED_ERROR], () =>
      session.connect(),
    );
    // A request that goes down with its session is not always answered.
    const broken = lost.promise.then(() => Promise.reject(new Error("the connection was lost")));
    await Promise.race([consume(session, inbox, () => lost.resolve()), broken]);
    broken.catch(() => undefined);
    const send = sender(session);
    const owned = stack.move();
    return {
      lost: lost.promise,
      send,
      [Symbol.asyncDispose]: () => Promise.resolve(owned.dispose()),
    } satisfies AgentConnection;
  };
}

function createSession(url: string): solace.Session {
  return solace.SolclientFactory.createSession(
    new solace.SessionProperties({
      url,
      vpnName: "default",
      userName: "agent",
      password: "agent",
      publisherProperties: new solace.MessagePublisherProperties({ enabled: true }),
      connectRetries: 0,
      connectTimeoutInMsecs: requestTimeoutMs,
      reconnectRetries: 0,
    } satisfies Partial<solace.SessionProperties>),
  );
}

async function consume(
  session: solace.Session,
  { queue, pattern, hear }: AgentInbox,
  onDown: () => void,
): Promise<void> {
  await settled(session, events.PROVISION_OK, [events.PROVISION_ERROR], () =>
    session.provisionEndpoint(descriptor(queue), new solace.QueueProperties(), true, queue),
  );
  const consumer = session.createMessageConsumer(
    Object.assign(new solace.MessageConsumerProperties(), {
      queueDescriptor: descriptor(queue),
      acknowledgeMode: solace.MessageConsumerAcknowledgeMode.CLIENT,
      connectAttempts: 1,
      reconnectAttempts: 0,
    } satisfies Partial<solace.MessageConsumerProperties>),
  );
  const emitter = emitterOf(consumer);
  for (const down of [flowEvents.DOWN_ERROR, flowEvents.RECONNECTING, "error"])
    emitter.on(down, onDown);
  emitter.on(flowEvents.MESSAGE, (message: solace.Message) => {
    hear(message.getDestination()!.getName(), message.getBinaryAttachment() as Uint8Array);
    message.acknowledge();
  });
  await settled(consumer, flowEvents.UP, [flowEvents.CONNECT_FAILED_ERROR], () =>
    consumer.connect(),
  );
  await settled(consumer, flowEvents.SUBSCRIPTION_OK, [flowEvents.SUBSCRIPTION_ERROR], () =>
    consumer.addSubscription(topic(pattern), pattern, requestTimeoutMs),
  );
}

function sender(session: solace.Session): AgentConnection["send"] {
  const waiting = new Map<string, PromiseWithResolvers<"confirmed" | "unroutable">>();
  const emitter = emitterOf(session);
  emitter.on(events.ACKNOWLEDGED_MESSAGE, ({ correlationKey }: PeerEvent) =>
    waiting.get(correlationKey ?? "")?.resolve("confirmed"),
  );
  emitter.on(events.REJECTED_MESSAGE_ERROR, (event: PeerEvent) => {
    const sent = waiting.get(event.correlationKey ?? "");
    const isUnheard = event.errorSubcode === solace.ErrorSubcode.NO_SUBSCRIPTION_MATCH;
    if (isUnheard) sent?.resolve("unroutable");
    else sent?.reject(errorOf("REJECTED_MESSAGE_ERROR", event));
  });
  let keys = 0;
  return async (message) => {
    const key = `${++keys}`;
    const sent = Promise.withResolvers<"confirmed" | "unroutable">();
    waiting.set(key, sent);
    try {
      session.send(encode(message, key));
      return await sent.promise;
    } finally {
      waiting.delete(key);
    }
  };
}

function encode({ topic: name, payload, properties }: RequestMessage, key: string): solace.Message {
  const message = makeMessage(topic(name), payload);
  message.setDeliveryMode(solace.MessageDeliveryModeType.PERSISTENT);
  message.setCorrelationKey(key);
  const map = new solace.SDTMapContainer();
  for (const [property, value] of Object.entries(properties)) {
    map.addField(
      property,
      solace.SDTField.create(fieldTypes[typeof value as keyof typeof fieldTypes], value),
    );
  }
  message.setUserPropertyMap(map);
  return message;
}

const fieldTypes = {
  string: SDTFieldType.STRING,
  number: SDTFieldType.INT64,
  boolean: SDTFieldType.BOOL,
} as const;
