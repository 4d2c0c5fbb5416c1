/**
 * What the library, the network and the broker report, as BrokerErrors that say what to do.
 */
import solace from "solclientjs";
import { BrokerError } from "../broker.ts";
import { subcodeOf, textOf } from "./library/library.ts";

const { ErrorSubcode } = solace;
type Subcode = solace.ErrorSubcode;

export interface Login {
  readonly where: string;
  readonly vpn: string;
  /** Such as `the user worker`. */
  readonly who: string;
}

/** Refusals of a login that another attempt does not help. */
const loginRemedies: ReadonlyMap<Subcode, string> = new Map([
  [ErrorSubcode.LOGIN_FAILURE, "check user name and password, certificate or token"],
  [
    ErrorSubcode.CLIENT_ACL_DENIED,
    "check the ACL profile of the user, which does not let it connect",
  ],
  [ErrorSubcode.CLIENT_USERNAME_IS_SHUTDOWN, "the user is shut down on the broker"],
  [ErrorSubcode.CLIENT_NAME_INVALID, "check the worker id, which the client name is made of"],
  [ErrorSubcode.MESSAGE_VPN_NOT_ALLOWED, "check the name of the message VPN"],
  [ErrorSubcode.BASIC_AUTHENTICATION_IS_SHUTDOWN, "the message VPN takes no passwords"],
  [
    ErrorSubcode.CLIENT_CERTIFICATE_AUTHENTICATION_IS_SHUTDOWN,
    "the message VPN takes no client certificates",
  ],
  [ErrorSubcode.FAILED_LOADING_TRUSTSTORE, "check the trust store"],
  [ErrorSubcode.FAILED_LOADING_CERTIFICATE_AND_KEY, "check client certificate, key and passphrase"],
]);

/** What OpenSSL and Node say of certificates: another attempt does not help. */
const certificateProblem = /certificate|altnames|self.signed|unable to verify|ssl routines/i;

/** Refusals of a request that another attempt does not help. */
const requestRemedies: ReadonlyMap<Subcode, string> = new Map([
  [ErrorSubcode.PERMISSION_NOT_ALLOWED, "Give the user the permission"],
  [ErrorSubcode.PUBLISH_ACL_DENIED, "Let the ACL profile of the user publish to it"],
  [ErrorSubcode.SUBSCRIPTION_ACL_DENIED, "Let the ACL profile of the user subscribe to it"],
  [ErrorSubcode.MESSAGE_TOO_LARGE, "Raise the limit of the broker or of the queue"],
  [ErrorSubcode.INVALID_TOPIC_SYNTAX, "A topic has 1 to 250 bytes and no empty level"],
  [ErrorSubcode.INVALID_QUEUE_NAME, "Choose another namespace or worker id"],
  [
    ErrorSubcode.AD_MESSAGING_NOT_SUPPORTED,
    "Let the client profile of the user send and receive guaranteed messages",
  ],
]);

/** Why a queue is unavailable for the moment, and what may help. */
const queueRemedies: ReadonlyMap<Subcode, string> = new Map([
  [ErrorSubcode.QUEUE_SHUTDOWN, "Enable the outgoing side (egress) of the queue"],
  [ErrorSubcode.MAX_CLIENTS_FOR_QUEUE, "Raise how many consumers the queue lets bind"],
  [ErrorSubcode.MAX_ENDPOINTS_EXCEEDED, "Raise how many queues the message VPN may have"],
  [ErrorSubcode.GM_NOT_READY, "Look after the message spool of the broker"],
  [ErrorSubcode.GM_UNAVAILABLE, "Look after the message spool of the broker"],
]);

export function connectFailure(failure: unknown, { where, vpn, who }: Login): BrokerError {
  const text = textOf(failure);
  const remedy = loginRemedies.get(subcodeOf(failure) ?? ErrorSubcode.NO_ERROR);
  if (remedy !== undefined) {
    const message = `The broker at ${where} refused ${who} in the message VPN ${vpn}: ${remedy} (${text})`;
    return new BrokerError(message, { cause: failure, transient: false });
  }
  return new BrokerError(`Cannot connect to the broker at ${where}: ${text}`, {
    cause: failure,
    transient: !certificateProblem.test(text),
  });
}

/** Why the broker did not do a request; `doing` reads as in "bind to the queue q". */
export function requestFailure(failure: unknown, doing: string): BrokerError {
  const message = `The broker did not ${doing}: ${textOf(failure)}`;
  const subcode = subcodeOf(failure) ?? ErrorSubcode.NO_ERROR;
  const remedy = requestRemedies.get(subcode) ?? queueRemedies.get(subcode);
  return new BrokerError(remedy === undefined ? message : `${message}. ${remedy}`, {
    cause: failure,
    transient: !requestRemedies.has(subcode),
  });
}

/** Whether the library has no room for a message or a request now, and reports when it has. */
export function isFull(failure: unknown): boolean {
  return subcodeOf(failure) === ErrorSubcode.INSUFFICIENT_SPACE;
}

export const isUnknownQueue = causedBy(ErrorSubcode.UNKNOWN_QUEUE_NAME);
export const isNotPermitted = causedBy(ErrorSubcode.PERMISSION_NOT_ALLOWED);
/** Whether a flow ended because the broker replays logged messages to its queue. */
export const isReplay = causedBy(ErrorSubcode.REPLAY_STARTED);

function causedBy(subcode: Subcode): (error: unknown) => boolean {
  return (error) => error instanceof BrokerError && subcodeOf(error.cause) === subcode;
}
