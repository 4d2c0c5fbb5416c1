/**
 * An agent on RabbitMQ that lives through anything: its answers wait in a durable queue, and a call that the broker has not
 * confirmed is sent again.
 */
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { type ConfirmChannel, connect } from "amqplib";
import { type Answer, decodeAnswer, encodeRequest } from "../../harness/messages.ts";
import { invokeTopic, responseTopic } from "../../worker/protocol/topics.ts";
import { keyOf } from "../conformance/amqp-peer.ts";
import type { ChaosAgent } from "./chaos.ts";

/** Milliseconds until the next attempt to connect. */
const retryMs = 200;
const agentName = "chaos";

interface Pending {
  readonly tool: string;
  readonly payload: Buffer;
  readonly answer: PromiseWithResolvers<Answer>;
  wasSent: boolean;
  isConfirmed: boolean;
}

/** Begins to connect. The caller disposes it after the last call. */
export function startAmqpChaosAgent(url: string, namespace: string): ChaosAgent & AsyncDisposable {
  const pending = new Map<string, Pending>();
  const stopping = new AbortController();
  let channel: ConfirmChannel | undefined;

  const send = (id: string, call: Pending): void => {
    if (channel === undefined) return;
    const headers = {
      replyTo: responseTopic(namespace, agentName, id),
      timestamp: Date.now(),
      ...(call.wasSent && { resent: true }),
    };
    call.wasSent = true;
    const key = keyOf(invokeTopic(namespace, call.tool));
    const options = { persistent: true, mandatory: true, headers };
    channel.publish(namespace, key, call.payload, options, (error) => {
      if (error === null || error === undefined) call.isConfirmed = true;
    });
  };

  const live = async (): Promise<void> => {
    const connection = await connect(url);
    connection.on("error", () => undefined);
    const closed = once(connection, "close");
    const opened = await connection.createConfirmChannel();
    opened.on("error", () => undefined);
    // No worker was there yet: its queue is not bound.
    opened.on("return", ({ properties }) => {
      const id = String(properties.headers?.["replyTo"]).split("/").at(-1)!;
      const call = pending.get(id);
      if (call !== undefined) setTimeout(() => send(id, call), retryMs).unref();
    });
    await opened.assertExchange(namespace, "topic", { durable: true });
    const queue = `${namespace}/q/agent`;
    await opened.assertQueue(queue, { durable: true, arguments: { "x-queue-type": "quorum" } });
    await opened.bindQueue(
      queue,
      namespace,
      `${keyOf(responseTopic(namespace, agentName, "x")).slice(0, -1)}#`,
    );
    await opened.consume(queue, (message) => {
      if (message === null) return;
      const id = message.fields.routingKey.split(".").at(-1)!;
      pending.get(id)?.answer.resolve(decodeAnswer(message.content));
      pending.delete(id);
      opened.ack(message);
    });
    channel = opened;
    for (const [id, call] of pending) if (!call.isConfirmed) send(id, call);
    stopping.signal.addEventListener("abort", () => void connection.close().catch(() => undefined));
    await closed;
  };

  const living = (async () => {
    while (!stopping.signal.aborted) {
      await live().catch(() => undefined);
      channel = undefined;
      if (!stopping.signal.aborted) await sleep(retryMs);
    }
  })();

  return {
    call(id, tool, args) {
      const payload = Buffer.from(
        encodeRequest(id, agentName, {
          tool,
          args: args as Record<string, never>,
          timeoutSeconds: 600,
        }),
      );
      const call: Pending = {
        ...{ tool, payload, answer: Promise.withResolvers<Answer>() },
        ...{ wasSent: false, isConfirmed: false },
      };
      pending.set(id, call);
      send(id, call);
      return call.answer.promise;
    },
    async [Symbol.asyncDispose]() {
      stopping.abort();
      await living;
    },
  };
}
