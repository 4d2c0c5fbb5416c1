/**
 * A broker without a network, and consumers at the other ends of its flows.
 */
import { expect } from "vitest";
import type { SettledRange } from "../../../../harness/fakes/solace/wire/assured-control.ts";
import { ConsumerFlow } from "../../../../harness/fakes/solace/consumer-flow.ts";
import type { SmfBrokerEvents } from "../../../../harness/fakes/solace/events.ts";
import { numberField, textField } from "../../../../harness/fakes/solace/wire/fields.ts";
import {
  decodeFrame,
  encodeFrame,
  frameLength,
  protocol,
} from "../../../../harness/fakes/solace/wire/frame.ts";
import { type Message, messageOf } from "../../../../harness/fakes/solace/wire/message.ts";
import { param } from "../../../../harness/fakes/solace/wire/params.ts";
import type { QueueProperties } from "../../../../harness/fakes/solace/wire/queue-properties.ts";
import type { Queue } from "../../../../harness/fakes/solace/queue.ts";
import { Router } from "../../../../harness/fakes/solace/router.ts";

/** A guaranteed message to topic `t`. */
export function message(
  body: string,
  options: { eligible?: boolean; ttlMs?: number } = {},
): Message {
  const { eligible = false, ttlMs } = options;
  return messageOf(
    decodeFrame(
      encodeFrame({
        protocol: protocol.message,
        isAssured: true,
        isDeadMessageEligible: eligible,
        fields: [
          numberField(param.deliveryMode, 1, 1),
          textField(param.topic, "t"),
          ...(ttlMs === undefined ? [] : [numberField(param.timeToLiveMs, ttlMs, 8)]),
        ],
        payload: Buffer.from(body),
      }),
    ),
  );
}

/** A broker without a network, with one queue that consumers share. */
export class Rig {
  nowMs = 1_000;
  readonly router = new Router({ now: () => this.nowMs, rejectsUnmatched: false });
  readonly queue: Queue;

  constructor(properties: Partial<QueueProperties> = {}) {
    this.router.createQueue("q", { accessType: "non-exclusive", ...properties });
    this.queue = this.router.queues.get("q")!;
  }

  /** A consumer that is ready, and continues the flow on which it received `lastReceived`. */
  consumer(name: string, options: { window?: number; lastReceived?: number } = {}): Consumer {
    const { window = 255, lastReceived = 0 } = options;
    const consumer = new Consumer(this.queue, name, this.router.newFlowId());
    this.queue.bind(consumer.flow, lastReceived);
    consumer.open(lastReceived, window);
    return consumer;
  }

  spool(...bodies: readonly string[]): void {
    for (const body of bodies) this.queue.spool(message(body));
  }

  /** Messages that leave their queue unaccepted from now on. */
  recordDead(): SmfBrokerEvents["dead"][0][] {
    const dead: SmfBrokerEvents["dead"][0][] = [];
    this.router.events.on("dead", (death) => dead.push(death));
    return dead;
  }
}

/** A message as it came to a consumer. */
export interface Received {
  readonly body: string;
  readonly id: number;
  readonly previousId: number;
  readonly redeliveries: number;
}

/** The client at the other end of a flow. */
export class Consumer {
  readonly received: Received[] = [];
  readonly flow: ConsumerFlow;
  readonly unbound: string[] = [];
  isBusy = false;
  readonly #queue: Queue;

  constructor(queue: Queue, clientName: string, flowId: number) {
    this.#queue = queue;
    this.flow = new ConsumerFlow(flowId, {
      clientName,
      isBusy: () => this.isBusy,
      send: (bytes) => this.received.push(decode(bytes)),
      unbind: (_flow, { text }) => this.unbound.push(text),
    });
  }

  get bodies(): readonly string[] {
    return this.received.map(({ body }) => body);
  }

  get last(): Received {
    return this.received.at(-1)!;
  }

  /** Tells the broker what came last and how much it takes further. */
  open(lastReceived: number, window: number): void {
    this.flow.acknowledge(lastReceived, window);
    this.#queue.handOut();
  }

  settle(outcome: SettledRange["outcome"], first = this.last.id, last = first): void {
    this.#queue.settle(this.flow, [{ first, last, outcome }]);
  }

  leave(): void {
    this.#queue.unbind(this.flow);
  }
}

function decode(bytes: Buffer): Received {
  expect(frameLength(bytes)).toBe(bytes.length);
  const { payload, fields } = decodeFrame(bytes);
  return {
    body: payload.toString(),
    id: fields.number(param.messageId, 8)!,
    previousId: fields.number(param.previousMessageId, 8)!,
    // Behind the two bytes that say which extended parameter it is.
    redeliveries: fields.bytes(param.extended)?.readUInt32BE(2) ?? 0,
  };
}
