/**
 * What amqplib, the network and the broker report, as BrokerErrors that say what to do.
 */
import { BrokerError } from "../broker.ts";
import { codeOf, reasonOf } from "../log.ts";
import type { AmqpAddress } from "./address.ts";

/** Reply codes of AMQP 0-9-1. */
export const replyCodes = {
  accessRefused: 403,
  notFound: 404,
  preconditionFailed: 406,
  notAllowed: 530,
  notImplemented: 540,
} as const;

/** Codes of OpenSSL and Node for certificates: another attempt does not help. */
const certificateProblem =
  /CERT|SELF_SIGNED|UNABLE_TO_VERIFY|HOSTNAME_MISMATCH|ERR_(?:OSSL|SSL|TLS)/;

export function connectFailure(error: unknown, address: AmqpAddress): BrokerError {
  const { name, user, virtualHost } = address;
  const text = reasonOf(error);
  const refusal = handshakeRefusal(text);
  const who = user === undefined ? "the login" : `the login of ${user.name}`;
  if (refusal === "login") {
    const message = `The broker at ${name} refused ${who}: check user and password, or the certificate (${text})`;
    return new BrokerError(message, { cause: error, transient: false });
  }
  if (refusal === "virtual host") {
    const message =
      `The broker at ${name} refused the virtual host "${virtualHost}": ` +
      `it does not exist, or ${user?.name ?? "the user"} has no permission for it (${text})`;
    return new BrokerError(message, { cause: error, transient: false });
  }
  const isPermanent = refusal === "mechanism" || certificateProblem.test(codeOf(error) ?? "");
  return new BrokerError(`Cannot connect to the broker at ${name}: ${codeOf(error) ?? text}`, {
    cause: error,
    transient: !isPermanent,
  });
}

/** What helps where another attempt does not. */
const commandRemedies: ReadonlyMap<number | undefined, string> = new Map([
  [replyCodes.accessRefused, "Give the user the permission"],
  [
    replyCodes.preconditionFailed,
    "It exists with other arguments: configure this worker as those that made it, or delete it " +
      "when it is empty and nobody uses it (rabbitmqctl delete_queue)",
  ],
  [replyCodes.notImplemented, "RabbitMQ 3.10 or newer is needed"],
]);

/** Why the broker did not do a command; `doing` reads as in "declare the queue q". */
export function commandFailure(error: unknown, doing: string): BrokerError {
  const message = `The broker did not ${doing}: ${reasonOf(error)}`;
  const remedy = commandRemedies.get(replyCodeOf(error));
  return new BrokerError(remedy === undefined ? message : `${message}. ${remedy}`, {
    cause: error,
    transient: remedy === undefined,
  });
}

export function isNotFound(failure: unknown): boolean {
  return failure instanceof BrokerError && replyCodeOf(failure.cause) === replyCodes.notFound;
}

/**
 * Why a consumer gets no more calls. RabbitMQ closes the channel of a call that is not settled
 * within its `consumer_timeout`; from 4.3 on it ends the consumer instead, if there still is one.
 */
export function consumerFailure(error: unknown, doing: string): BrokerError {
  const isTimeout =
    replyCodeOf(error) === replyCodes.preconditionFailed &&
    /acknowledgement on channel \d+ timed out/.test(reasonOf(error));
  if (!isTimeout) return commandFailure(error, doing);
  const message =
    "The broker took unsettled calls back: one was not settled within its consumer timeout, which " +
    `AMQP_CONSUMER_TIMEOUT_SECONDS has to equal (${reasonOf(error)})`;
  return new BrokerError(message, { cause: error, transient: true });
}

/** The broker ended a consumer without a reason. */
export function consumerEnded(): BrokerError {
  const message =
    "The broker ended a consumer: its queue was removed, or a call was not settled within AMQP_CONSUMER_TIMEOUT_SECONDS";
  return new BrokerError(message, { transient: true });
}

export function replyCodeOf(error: unknown): number | undefined {
  const isCoded = error instanceof Error && "code" in error && typeof error.code === "number";
  return isCoded ? (error.code as number) : undefined;
}

/**
 * What the broker refused during the handshake. amqplib gives no codes there: a refused login is a
 * text with the reply code, a refused virtual host an unexpected close.
 */
function handshakeRefusal(text: string): "login" | "virtual host" | "mechanism" | undefined {
  if (text.includes(`terminated by server: ${replyCodes.accessRefused}`)) return "login";
  if (text.includes(`terminated by server: ${replyCodes.notAllowed}`)) return "virtual host";
  if (/Expected ConnectionOpenOk; got <ConnectionClose/.test(text)) return "virtual host";
  if (text.startsWith("SASL mechanism")) return "mechanism";
  return undefined;
}
