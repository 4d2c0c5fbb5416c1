/**
 * What a client that is logged in asks of the broker, but for guaranteed messaging: subscriptions,
 * direct messages.
 */
import { maxTopicBytes } from "../../../worker/protocol/topics.ts";
import { AssuredSession, type ClientLink } from "./assured-session.ts";
import { type Fault, refusals } from "./faults.ts";
import { MalformedError } from "./wire/fields.ts";
import { type Frame, encodeFrame, protocol } from "./wire/frame.ts";
import { messageOf } from "./wire/message.ts";
import { type Response, responseParam } from "./wire/params.ts";
import { allows } from "./wire/queue-properties.ts";
import type { Client, Router } from "./router.ts";
import { type SubscriptionRequest, decodeSubscriptionRequest } from "./subscription-messages.ts";
import { type Subscription, parseSubscription } from "./topics.ts";

/** Subscriptions of one client, and of one queue; further ones are refused. */
export const maxSubscriptions = 10_000;

const ok: Response = { code: 200, text: "OK" };

/** One client, from its login until its connection ends. */
export class Session implements Client {
  readonly name: string;
  readonly username: string;
  readonly subscriptions = new Map<string, Subscription>();
  lastShare = 0;
  readonly #router: Router;
  readonly #link: ClientLink;
  readonly #assured: AssuredSession;

  constructor(router: Router, link: ClientLink) {
    this.name = link.clientName;
    this.username = link.username;
    this.#router = router;
    this.#link = link;
    this.#assured = new AssuredSession(router, link);
  }

  /** Carries out what a frame asks for. Throws MalformedError. */
  handle(frame: Frame): void {
    switch (frame.protocol) {
      case protocol.subscription:
        return this.#subscribe(frame, decodeSubscriptionRequest(frame.payload));
      case protocol.assuredControl:
        return this.#assured.handle(frame);
      case protocol.message:
        if (frame.isAssured) this.#assured.publish(frame);
        else this.#router.forward(messageOf(frame), frame.bytes);
        return;
      default:
        throw new MalformedError(`SMF protocol ${frame.protocol}`);
    }
  }

  hear(topic: string, frame: Buffer): void {
    if (this.#link.isBusy()) {
      this.#router.events.emit("discarded", { clientName: this.name, topic });
    } else {
      this.#link.send(frame);
    }
  }

  /** The client has read what was on its way. */
  resume(): void {
    this.#assured.resume();
  }

  close(): void {
    this.#assured.close();
  }

  #subscribe(frame: Frame, request: SubscriptionRequest): void {
    const { topic, queue } = request;
    const fault = this.#router.faults.subscribe?.(topic, queue) ?? this.#change(request);
    if (fault === "silence") return;
    if (fault === undefined && request.action === "add") {
      this.#router.events.emit("subscribed", { clientName: this.name, topic, queue });
    }
    if (!request.wantsAnswer) return;
    this.#link.send(
      encodeFrame({
        protocol: protocol.subscription,
        correlationTag: frame.correlationTag,
        fields: [responseParam(fault ?? ok)],
        payload: frame.payload,
      }),
    );
  }

  /** Adds or removes a subscription. Returns why it does not. */
  #change({ action, topic, queue: queueName }: SubscriptionRequest): Fault | undefined {
    const queue = queueName === undefined ? undefined : this.#router.queues.get(queueName);
    if (topic === "" || Buffer.byteLength(topic) > maxTopicBytes) return refusals.invalidName;
    if (queueName !== undefined) {
      if (queue === undefined) return refusals.unknownQueue;
      if (!allows(queue.properties, this.username, "modify-topic")) return refusals.permission;
    }
    const subscriptions = queue ? queue.subscriptions : this.subscriptions;
    if (action === "remove")
      return subscriptions.delete(topic) ? undefined : refusals.subscriptionNotFound;
    if (subscriptions.has(topic)) return refusals.subscriptionExists;
    if (subscriptions.size >= maxSubscriptions) return refusals.maxSubscriptions;
    if (queue) queue.subscriptions.add(topic);
    else this.subscriptions.set(topic, parseSubscription(topic));
    return undefined;
  }
}
