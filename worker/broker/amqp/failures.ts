/**
 * What amqplib, the network and the broker report, as BrokerErrors that say what to do.
 */
import { BrokerError } from "../broker.ts";
import type { AmqpAddress } from "./address.ts";

/** Reply codes of AMQP 0-9-1. */
export const replyCodes = {
  accessRefused: 403,
  notFound: 404,
  preconditionFailed: 406,
  notAllowed: 530,
  notImplemented: 540,
} as const;

/**
 * What a broker says about certificates, in OpenSSL's and Node's words: waiting helps none of it.
 */
const certificateProblem =
  /CERT|SELF_SIGNED|UNABLE_TO_VERIFY|HOSTNAME_MISMATCH|ERR_(?:OSSL|SSL|TLS)/;

/** Why a connection could not be opened. */
export function connectFailure(error: unknown, address: AmqpAddress): BrokerError {
  const { name, user, virtualHost } = address;
  const text = textOf(error);
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

/** Why the broker did not do what it was asked to; `doing` reads as in "declare the queue q". */
export function commandFailure(error: unknown, doing: string): BrokerError {
  const text = textOf(error);
  const message = `The broker did not ${doing}: ${text}`;
  switch (replyCodeOf(error)) {
    case replyCodes.accessRefused:
      return new BrokerError(`${message}. Give the user the permission`, {
        cause: error,
        transient: false,
      });
    case replyCodes.preconditionFailed:
      return new BrokerError(
        `${message}. It exists with other arguments: configure this worker as those that made it, or delete it ` +
          "when it is empty and nobody uses it (rabbitmqctl delete_queue)",
        { cause: error, transient: false },
      );
    case replyCodes.notImplemented:
      return new BrokerError(`${message}. RabbitMQ 3.10 or newer is needed`, {
        cause: error,
        transient: false,
      });
    default:
      return new BrokerError(message, { cause: error, transient: true });
  }
}

/** Whether a command failed because what it names does not exist. */
export function isNotFound(failure: unknown): boolean {
  return failure instanceof BrokerError && replyCodeOf(failure.cause) === replyCodes.notFound;
}

/**
 * Why a consumer gets no more calls. RabbitMQ closes the channel of a call that was not settled
 * within the `consumer_timeout`, since 4.3 only where there is no consumer any more that it could
 * end instead.
 */
export function consumerFailure(error: unknown, doing: string): BrokerError {
  const isTimeout =
    replyCodeOf(error) === replyCodes.preconditionFailed &&
    /acknowledgement on channel \d+ timed out/.test(textOf(error));
  if (!isTimeout) return commandFailure(error, doing);
  const message =
    "The broker took unsettled calls back: one was not settled within its consumer timeout, which " +
    `AMQP_CONSUMER_TIMEOUT_SECONDS has to equal (${textOf(error)})`;
  return new BrokerError(message, { cause: error, transient: true });
}

/** The broker ended a consumer, and does not say why. */
export function consumerEnded(): BrokerError {
  const message =
    "The broker ended a consumer: its queue was removed, or a call was not settled within AMQP_CONSUMER_TIMEOUT_SECONDS";
  return new BrokerError(message, { transient: true });
}

/** The reply code of the broker, if it is the broker who speaks. */
export function replyCodeOf(error: unknown): number | undefined {
  const isCoded = error instanceof Error && "code" in error && typeof error.code === "number";
  return isCoded ? (error.code as number) : undefined;
}

export function textOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/**
 * What the broker refused during the handshake. amqplib gives no codes there: a refused login comes
 * as a text with the reply code, a refused virtual host as a close where another answer was due.
 */
function handshakeRefusal(text: string): "login" | "virtual host" | "mechanism" | undefined {
  if (text.includes(`terminated by server: ${replyCodes.accessRefused}`)) return "login";
  if (text.includes(`terminated by server: ${replyCodes.notAllowed}`)) return "virtual host";
  if (/Expected ConnectionOpenOk; got <ConnectionClose/.test(text)) return "virtual host";
  if (text.startsWith("SASL mechanism")) return "mechanism";
  return undefined;
}

/** The code of the network or of TLS. */
function codeOf(error: unknown): string | undefined {
  const isCoded = error instanceof Error && "code" in error && typeof error.code === "string";
  return isCoded ? (error.code as string) : undefined;
}
