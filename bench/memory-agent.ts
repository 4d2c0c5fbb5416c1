/**
 * An agent on a broker inside this process.
 */
import { type Answer, decodeAnswer, encodeRequest } from "../harness/messages.ts";
import type { MemoryBroker } from "../test/fakes/memory-broker/broker.ts";
import type { MemorySubscription } from "../test/fakes/memory-broker/subscription.ts";
import { invokeTopic, responseTopic } from "../worker/protocol/topics.ts";
import { newUuid } from "../worker/support/ids.ts";
import { defaultUserId } from "../harness/options/defaults.ts";
import { callTimeoutSeconds } from "./environment.ts";

const agentName = "bench";

/** Makes calls and hears their answers. Its owner disposes it. */
export class MemoryAgent implements Disposable {
  readonly #broker: MemoryBroker;
  readonly #namespace: string;
  readonly #answers: MemorySubscription;
  /** Calls on their way, by the topics of their answers. */
  readonly #pending = new Map<string, (payload: Uint8Array) => void>();

  constructor(broker: MemoryBroker, namespace: string) {
    this.#broker = broker;
    this.#namespace = namespace;
    this.#answers = broker.subscribe(responseTopic(namespace, agentName, ">"));
    void this.#listen();
  }

  /** Calls a tool without arguments and waits for the answer. */
  async call(tool: string): Promise<Answer> {
    const id = newUuid();
    const replyTo = responseTopic(this.#namespace, agentName, id);
    const { promise, resolve } = Promise.withResolvers<Uint8Array>();
    this.#pending.set(replyTo, resolve);
    const request = encodeRequest(id, agentName, { tool, timeoutSeconds: callTimeoutSeconds });
    const properties = { replyTo, clientId: agentName, userId: defaultUserId };
    this.#broker.publish(invokeTopic(this.#namespace, tool), request, properties);
    return decodeAnswer(await promise);
  }

  [Symbol.dispose](): void {
    this.#answers[Symbol.dispose]();
  }

  async #listen(): Promise<void> {
    for await (const { topic, payload } of this.#answers) {
      this.#pending.get(topic)?.(payload);
      this.#pending.delete(topic);
    }
  }
}
