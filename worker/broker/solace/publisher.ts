/**
 * Publishes with confirmation: a message counts as published when the broker has stored it.
 */
import solace from "solclientjs";
import type { Clock } from "../../support/clock.ts";
import { abortable } from "../../support/timeout.ts";
import { BrokerError, type OutboundMessage, type PublishOutcome } from "../broker.ts";
import { Confirmations } from "../confirmations.ts";
import type { StatusDelivery } from "./config.ts";
import type { SolaceConnection } from "./connection.ts";
import { requestFailure } from "./failures.ts";
import { subcodeOf } from "./library/library.ts";
import { toMessage } from "./messages.ts";

const { DIRECT, PERSISTENT } = solace.MessageDeliveryModeType;

/** The publishing half of a session. Ends with its connection. */
export class Publisher {
  readonly #connection: SolaceConnection;
  readonly #clock: Clock;
  readonly #statusDelivery: StatusDelivery;
  readonly #confirmations: Confirmations;
  /** Resolves when the message before is sent. */
  #turn = Promise.resolve();

  constructor(connection: SolaceConnection, clock: Clock, statusDelivery: StatusDelivery) {
    this.#connection = connection;
    this.#clock = clock;
    this.#statusDelivery = statusDelivery;
    this.#confirmations = new Confirmations(connection);
  }

  /** A direct message counts as confirmed when it is sent. Keeps the order of the calls. */
  async publish(outbound: OutboundMessage, signal: AbortSignal): Promise<PublishOutcome> {
    const over = AbortSignal.any([signal, this.#connection.ended]);
    over.throwIfAborted();
    const message = toMessage(outbound, this.#clock.nowMs());
    const isDirect = outbound.isStatus === true && this.#statusDelivery === "direct";
    message.setDeliveryMode(isDirect ? DIRECT : PERSISTENT);
    try {
      await this.#confirmations.due(outbound.payload.byteLength, () => this.#send(message, over));
      return "confirmed";
    } catch (error) {
      over.throwIfAborted();
      if (error instanceof BrokerError) throw error;
      if (isUnroutable(error)) return "unroutable";
      throw requestFailure(error, `take a message to ${outbound.topic}`);
    }
  }

  async #send(message: solace.Message, over: AbortSignal): Promise<void> {
    const { session, answers } = this.#connection;
    const { key, answer } = answers.expect();
    message.setCorrelationKey(key);
    const send = (): void => {
      session.send(message);
      // The broker does not confirm direct messages.
      if (message.getDeliveryMode() === DIRECT) answers.succeed(key);
    };
    this.#turn = this.#turn.then(() => this.#connection.sendWithRoom(key, send));
    try {
      await abortable(answer, over);
    } finally {
      answers.forget(key);
    }
  }
}

/** Whether the client profile has the broker refuse messages without a subscriber. */
function isUnroutable(failure: unknown): boolean {
  return subcodeOf(failure) === solace.ErrorSubcode.NO_SUBSCRIPTION_MATCH;
}
