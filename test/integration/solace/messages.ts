/**
 * Destinations and messages of the real library.
 */
import solace from "solclientjs";

const factory = solace.SolclientFactory;

export function topic(name: string): solace.Destination {
  return factory.createTopicDestination(name);
}

export function queue(name: string): solace.Destination {
  return factory.createDurableQueueDestination(name);
}

/** A message that is direct as yet. */
export function makeMessage(
  destination: solace.Destination,
  body: string | Buffer,
): solace.Message {
  const message = factory.createMessage();
  message.setDestination(destination);
  message.setBinaryAttachment(Buffer.from(body));
  message.setDeliveryMode(solace.MessageDeliveryModeType.DIRECT);
  return message;
}
