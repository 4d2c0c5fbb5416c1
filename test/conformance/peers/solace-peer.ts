/**
 * An agent on Solace, with nothing but the client library: it publishes guaranteed messages as
 * Python agents do, and listens with direct subscriptions.
 */
import solace from "solclientjs";
import type { HeardMessage, Peer } from "../broker.ts";

const { SDTFieldType, SolclientFactory } = solace;
const events = solace.SessionEventCode;

SolclientFactory.init({
  profile: solace.SolclientFactoryProfiles.version10_5,
  logLevel: solace.LogLevel.FATAL,
} as solace.SolclientFactoryProperties);

/** Where the broker is and as whom to log in. */
export interface SolacePeerOptions {
  readonly url: string;
  readonly vpn?: string;
  readonly username?: string;
  readonly password?: string;
  /** Whether the broker is to keep what dies of its messages. */
  readonly isDeadMessageEligible?: boolean;
}

/** An agent, and the administrator that a real broker needs to be left clean. */
export interface SolacePeer extends Peer, AsyncDisposable {
  readonly session: solace.Session;
  /** Removes a queue, if there is one. */
  removeQueue(name: string): Promise<void>;
}

/** Connects an agent. The caller owns it. */
export async function connectSolacePeer(options: SolacePeerOptions): Promise<SolacePeer> {
  const session = SolclientFactory.createSession(
    new solace.SessionProperties({
      url: options.url,
      vpnName: options.vpn ?? "default",
      userName: options.username ?? "agent",
      password: options.password ?? "agent",
      connectRetries: 0,
      connectTimeoutInMsecs: 10_000,
      reconnectRetries: 0,
      sendBufferMaxSize: 16 * 1024 * 1024,
      publisherProperties: new solace.MessagePublisherProperties({ enabled: true }),
    } satisfies Partial<solace.SessionProperties>),
  );
  const asked = new Map<string, PromiseWithResolvers<void>>();
  const ears = new Set<(message: HeardMessage) => void>();
  const answer = (event: { correlationKey?: unknown }, error?: Error): void => {
    const asker = asked.get(String(event.correlationKey));
    asked.delete(String(event.correlationKey));
    if (error) asker?.reject(error);
    else asker?.resolve();
  };
  for (const success of [events.ACKNOWLEDGED_MESSAGE, events.SUBSCRIPTION_OK, events.PROVISION_OK])
    session.on(success, (event: solace.SessionEvent) => answer(event));
  for (const failure of [events.SUBSCRIPTION_ERROR, events.PROVISION_ERROR])
    session.on(failure, (event: solace.SessionEvent) => answer(event, new Error(event.infoStr)));
  session.on(events.REJECTED_MESSAGE_ERROR, (error: solace.RequestError) => {
    // Its types have another event than what comes.
    const event = error as unknown as solace.SessionEvent;
    // To an agent it is no failure that nobody listens.
    const isUnheard = event.errorSubcode === solace.ErrorSubcode.NO_SUBSCRIPTION_MATCH;
    answer(event, isUnheard ? undefined : new Error(event.infoStr));
  });
  session.on(events.MESSAGE, (message: solace.Message) => {
    const heard = toHeard(message);
    for (const hear of ears) hear(heard);
  });
  let keys = 0;
  const ask = async (send: (key: string) => void): Promise<void> => {
    const asker = Promise.withResolvers<void>();
    const key = `${++keys}`;
    asked.set(key, asker);
    send(key);
    await asker.promise;
  };
  await connected(session);
  return {
    session,
    publish: (topic, payload, properties = {}) =>
      ask((key) => {
        const message = SolclientFactory.createMessage();
        message.setDestination(SolclientFactory.createTopicDestination(topic));
        message.setDeliveryMode(solace.MessageDeliveryModeType.PERSISTENT);
        message.setDMQEligible(options.isDeadMessageEligible ?? false);
        message.setBinaryAttachment(Buffer.from(payload));
        message.setUserPropertyMap(toMap(properties));
        message.setCorrelationKey(key);
        session.send(message);
      }),
    async listen(pattern) {
      const heard: HeardMessage[] = [];
      let arrived = Promise.withResolvers<void>();
      ears.add((message) => {
        if (!isHeard(pattern, message.topic)) return;
        heard.push(message);
        arrived.resolve();
        arrived = Promise.withResolvers();
      });
      const topic = SolclientFactory.createTopicDestination(pattern);
      await ask((key) => session.subscribe(topic, true, key, 10_000));
      return async () => {
        for (;;) {
          const message = heard.shift();
          if (message !== undefined) return message;
          await arrived.promise;
        }
      };
    },
    removeQueue: (name) =>
      ask((key) => {
        const type = solace.QueueType.QUEUE;
        const queue = new solace.QueueDescriptor({ name, type, durable: true });
        session.deprovisionEndpoint(queue, true, key);
      }),
    async [Symbol.asyncDispose]() {
      const gone = new Promise<void>((resolve) => session.on(events.DISCONNECTED, resolve));
      session.disconnect();
      await gone;
      session.dispose();
    },
  };
}

async function connected(session: solace.Session): Promise<void> {
  const up = new Promise<void>((resolve, reject) => {
    session.on(events.UP_NOTICE, resolve);
    session.on(events.CONNECT_FAILED_ERROR, (event: solace.OperationError) =>
      reject(new Error(`the agent cannot connect: ${event.message}`)),
    );
  });
  session.connect();
  await up;
}

/**
 * Each listener of the session hears every message of it: the broker does not say for which pattern
 * one came.
 */
function isHeard(pattern: string, topic: string): boolean {
  const wanted = pattern.split("/");
  const levels = topic.split("/");
  const isOpen = wanted.at(-1) === ">";
  const fixed = isOpen ? wanted.slice(0, -1) : wanted;
  const fits = isOpen ? levels.length > fixed.length : levels.length === fixed.length;
  return fits && fixed.every((level, index) => level === "*" || level === levels[index]);
}

/** In the types that the Python library gives to `str` and `int`. */
function toMap(properties: Readonly<Record<string, string | number>>): solace.SDTMapContainer {
  const map = new solace.SDTMapContainer();
  for (const [name, value] of Object.entries(properties)) {
    const type = typeof value === "string" ? SDTFieldType.STRING : SDTFieldType.INT64;
    map.addField(name, solace.SDTField.create(type, value));
  }
  return map;
}

function toHeard(message: solace.Message): HeardMessage {
  const map = message.getUserPropertyMap();
  const properties = (map?.getKeys() ?? []).map(
    (name) => [name, map?.getField(name).getValue() as unknown] as const,
  );
  return {
    topic: message.getDestination()?.getName() ?? "",
    payload: Buffer.from((message.getBinaryAttachment() ?? "") as Uint8Array).toString(),
    properties: Object.fromEntries(properties),
  };
}
