/**
 * Guaranteed messaging of one client: its publisher and consumer flows, and the queues that it
 * makes.
 */
import {
  assured,
  assuredField,
  decodeAssured,
  encodeAssured,
  readSettled,
} from "./wire/assured-control.ts";
import { ConsumerFlow, type Receiver } from "./consumer-flow.ts";
import { type Fault, refusals } from "./faults.ts";
import type { Fields } from "./wire/fields.ts";
import { type Field, MalformedError, numberField, textField } from "./wire/fields.ts";
import { type Frame, encodeFrame, protocol } from "./wire/frame.ts";
import { messageOf } from "./wire/message.ts";
import { type Response, param, responseParam } from "./wire/params.ts";
import type { PublisherFlow } from "./publisher-flow.ts";
import { allows, encodeProperties, readProperties } from "./wire/queue-properties.ts";
import type { Queue } from "./queue.ts";
import type { Router } from "./router.ts";

/** Flows of one client, either way; further ones are refused. */
export const maxFlowsPerClient = 1_000;

/** The largest window that a client can open. */
const maxWindow = 255;
const ok: Response = { code: 200, text: "OK" };

/** The connection that the flows use. */
export interface ClientLink {
  readonly clientName: string;
  readonly username: string;
  isBusy(): boolean;
  send(bytes: Buffer): void;
}

/** A consumer flow and the queue that it empties. */
interface Consumption {
  readonly flow: ConsumerFlow;
  readonly queue: Queue;
}

/** What a client has open; its connection closes it when it ends. */
export class AssuredSession {
  readonly #router: Router;
  readonly #link: ClientLink;
  readonly #receiver: Receiver;
  readonly #publishers = new Map<number, PublisherFlow>();
  readonly #consumptions = new Map<number, Consumption>();

  constructor(router: Router, link: ClientLink) {
    this.#router = router;
    this.#link = link;
    this.#receiver = {
      clientName: link.clientName,
      isBusy: () => link.isBusy(),
      send: (bytes) => link.send(bytes),
      unbind: (flow, reason) => {
        this.#consumptions.delete(flow.id);
        this.#sendControl(assured.unbind, [flowIdField(flow.id)], { response: reason });
      },
    };
  }

  /** Carries out a request. Throws MalformedError. */
  handle(frame: Frame): void {
    const { type, fields } = decodeAssured(frame.payload);
    const tag = frame.correlationTag;
    switch (type) {
      case assured.openPublisher:
        return this.#openPublisher(fields, tag);
      case assured.closePublisher:
        return this.#closePublisher(fields, tag);
      case assured.acknowledge:
        return this.#acknowledge(fields);
      case assured.bind:
        return this.#bind(fields, tag);
      case assured.unbind:
        return this.#unbind(fields, tag);
      case assured.create:
        return this.#create(fields, tag);
      case assured.delete:
        return this.#delete(fields, tag);
      default:
        throw new MalformedError(`assured control message ${type}`);
    }
  }

  /** Takes a guaranteed message, once, and confirms or refuses it. */
  publish(frame: Frame): void {
    const { fields } = frame;
    const flow = this.#publishers.get(fields.number(param.flowId, 4) ?? 0);
    if (flow === undefined) return;
    const id = fields.number(param.messageId, 8) ?? 0;
    const standing = flow.standing(id, fields.number(param.previousMessageId, 8) ?? 0);
    // The client sends again, from the one that is missing on.
    if (standing === "early") return;
    if (standing === "new") {
      const message = messageOf(frame);
      const fault = this.#router.faults.publish?.(message.topic, this.#link.clientName);
      if (fault === "lost") return;
      const refusal = typeof fault === "object" ? fault : this.#router.publish(message);
      flow.conclude(id, refusal);
      this.#router.events.emit("published", {
        clientName: this.#link.clientName,
        topic: message.topic,
        outcome: refusal ? "refused" : "confirmed",
      });
      if (fault === "unconfirmed") return;
    }
    this.#sendControl(
      assured.acknowledge,
      [
        flowIdField(flow.id),
        numberField(assuredField.lastAcknowledged, id, 8),
        numberField(assuredField.window, maxWindow, 1),
      ],
      { response: flow.refusal(id) },
    );
  }

  /** Hands out what waited until the client had read what was on its way. */
  resume(): void {
    for (const { queue } of this.#consumptions.values()) queue.handOut();
  }

  /**
   * Gives back to the queues what the client did not settle. Its publisher flows remain for when it
   * comes back.
   */
  close(): void {
    const consumptions = [...this.#consumptions.values()];
    this.#consumptions.clear();
    for (const { queue, flow } of consumptions) queue.unbind(flow);
  }

  #openPublisher(fields: Fields, tag: number | undefined): void {
    const { publishers, faults } = this.#router;
    const { clientName } = this.#link;
    // Who has sent nothing has nothing to go on with, whatever flow it had; so a client begins anew
    // that was refused its own.
    const isFresh = (fields.number(assuredField.lastSent, 8) ?? 0) === 0;
    const name = fields.text(assuredField.flowName) ?? "";
    const former = faults.forgetsPublishers ? undefined : publishers.reopen(name, clientName);
    if (isFresh && former) publishers.close(former);
    const flow = isFresh ? publishers.open(this.#router.newFlowId(), clientName) : former;
    if (flow === undefined || this.#publishers.size >= maxFlowsPerClient) {
      return this.#sendControl(assured.openPublisher, [], {
        tag,
        response: refusals.unknownFlowName,
      });
    }
    this.#publishers.set(flow.id, flow);
    const known = fields.number(assuredField.lastAcknowledged, 8) ?? 0;
    const window = fields.number(assuredField.window, 1) ?? maxWindow;
    this.#sendControl(
      assured.openPublisher,
      [
        numberField(assuredField.lastAcknowledged, flow.confirmedAfter(known), 8),
        flowIdField(flow.id),
        textField(assuredField.flowName, flow.name),
        numberField(assuredField.window, window, 1),
        numberField(assuredField.publisherId, flow.id, 4),
      ],
      { tag, response: ok },
    );
  }

  #closePublisher(fields: Fields, tag: number | undefined): void {
    const id = fields.number(assuredField.flowId, 4) ?? 0;
    const flow = this.#publishers.get(id);
    this.#publishers.delete(id);
    if (flow) this.#router.publishers.close(flow);
    this.#sendControl(assured.closePublisher, [flowIdField(id)], { tag, response: ok });
  }

  #create(fields: Fields, tag: number | undefined): void {
    const name = fields.text(assuredField.queue) ?? "";
    const fault =
      this.#router.faults.provision?.(name) ??
      this.#router.createQueue(name, readProperties(fields, this.#link.username));
    this.#answer(assured.create, fields, tag, fault);
  }

  #delete(fields: Fields, tag: number | undefined): void {
    const name = fields.text(assuredField.queue) ?? "";
    const queue = this.#router.queues.get(name);
    let fault = this.#router.faults.provision?.(name);
    if (queue === undefined) fault ??= refusals.unknownQueue;
    else if (!allows(queue.properties, this.#link.username, "delete"))
      fault ??= refusals.permission;
    if (fault === undefined) this.#router.deleteQueue(name);
    this.#answer(assured.delete, fields, tag, fault);
  }

  /** Repeats the request with success or a refusal; or does not. */
  #answer(type: number, fields: Fields, tag: number | undefined, fault: Fault | undefined): void {
    if (fault !== "silence") this.#sendControl(type, fields, { tag, response: fault ?? ok });
  }

  #bind(fields: Fields, tag: number | undefined): void {
    const name = fields.text(assuredField.queue) ?? "";
    const { username } = this.#link;
    const queue = this.#router.queues.get(name);
    let fault = this.#router.faults.bind?.(name);
    if (queue === undefined) fault ??= refusals.unknownQueue;
    else if (!allows(queue.properties, username, "consume")) fault ??= refusals.permission;
    else if (queue.isAtConsumerLimit || this.#consumptions.size >= maxFlowsPerClient) {
      fault ??= refusals.maxClientsForQueue;
    }
    if (queue === undefined || fault !== undefined) {
      return this.#answer(assured.bind, fields, tag, fault);
    }
    const flow = new ConsumerFlow(this.#router.newFlowId(), this.#receiver);
    const lastReceived = fields.number(assuredField.lastReceived, 8) ?? 0;
    const reply = [
      flowIdField(flow.id),
      numberField(assuredField.lastAcknowledged, lastReceived, 8),
      numberField(assuredField.window, fields.number(assuredField.window, 1) ?? maxWindow, 1),
      numberField(assuredField.isActive, queue.wouldBeActive ? 1 : 0, 1),
      numberField(assuredField.spoolerId, 1, 4),
      textField(assuredField.queue, name),
      ...encodeProperties(queue.properties, username),
      numberField(assuredField.endpointId, 1, 4),
    ];
    const answer = (): void => this.#sendControl(assured.bind, reply, { tag, response: ok });
    const late = this.#router.faults.answersBindAfter?.(name);
    if (late === undefined) answer();
    else void late.then(answer);
    this.#consumptions.set(flow.id, { flow, queue });
    queue.bind(flow, lastReceived);
  }

  #unbind(fields: Fields, tag: number | undefined): void {
    const id = fields.number(assuredField.flowId, 4) ?? 0;
    const consumption = this.#consumptions.get(id);
    this.#consumptions.delete(id);
    this.#sendControl(assured.unbind, [flowIdField(id)], { tag, response: ok });
    consumption?.queue.unbind(consumption.flow);
  }

  #acknowledge(fields: Fields): void {
    const consumption = this.#consumptions.get(fields.number(assuredField.flowId, 4) ?? 0);
    // What was on its way while the flow ended concerns nobody any more.
    if (consumption === undefined) return;
    const { flow, queue } = consumption;
    flow.acknowledge(
      fields.number(assuredField.lastAcknowledged, 8) ?? 0,
      fields.number(assuredField.window, 1) ?? maxWindow,
    );
    queue.settle(flow, readSettled(fields));
  }

  #sendControl(
    type: number,
    fields: Iterable<Field>,
    { tag, response }: { tag?: number | undefined; response?: Response | undefined },
  ): void {
    this.#link.send(
      encodeFrame({
        protocol: protocol.assuredControl,
        correlationTag: tag,
        fields: response ? [responseParam(response)] : [],
        payload: encodeAssured(type, fields),
      }),
    );
  }
}

function flowIdField(id: number): Field {
  return numberField(assuredField.flowId, id, 4);
}
