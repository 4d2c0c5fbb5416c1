/**
 * An agent that lives through anything: its answers wait in a durable queue, and a call that the broker has not confirmed is
 * sent again. What differs between brokers is how it connects.
 */
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { type Answer, decodeAnswer, encodeRequest } from "../../harness/messages.ts";
import { resentProperty } from "../../worker/protocol/request.ts";
import { invokeTopic, responseTopic } from "../../worker/protocol/topics.ts";
import type { JsonObject } from "../../worker/support/json.ts";

/** Milliseconds until the next attempt to connect, or to send what nobody subscribed to. */
const retryMs = 200;

const agentName = "chaos";

/** Longer than any chaos: a call that comes late is run all the same. */
const callTimeoutSeconds = 600;

/** A call on its way. */
export interface CallMessage {
  readonly topic: string;
  readonly payload: Buffer;
  readonly properties: Readonly<Record<string, string | number | boolean>>;
}

/** A connection of the agent. Its owner disposes it. */
export interface AgentConnection extends AsyncDisposable {
  /**
   * Publishes, guaranteed. Resolves when the broker has said whether it has the message, or that nobody subscribes to the
   * topic. Whoever's connection ends before hears nothing, or a rejection.
   */
  send(message: CallMessage): Promise<"confirmed" | "unroutable">;
  /** Fulfils when the connection is lost. */
  readonly lost: Promise<unknown>;
}

/** Where an agent's answers come in. */
export interface AgentInbox {
  readonly namespace: string;
  /** Durable, and made where it is missing. */
  readonly queue: string;
  /** What the queue subscribes to, with `>` for the last level. */
  readonly pattern: string;
  /** Gets each answer before it is settled. */
  readonly hear: (topic: string, payload: Uint8Array) => void;
}

/** Connects, and takes answers from then on. Rejects when it cannot, and leaves nothing open then. */
export type AgentDial = (inbox: AgentInbox) => Promise<AgentConnection>;

interface Pending {
  readonly tool: string;
  readonly payload: Buffer;
  readonly answer: PromiseWithResolvers<Answer>;
  /** Whether the broker may have it without having said so. */
  mayBeThere: boolean;
  isConfirmed: boolean;
}

/** An agent. Begins to connect when it is made; its owner disposes it after the last call. */
export class ChaosAgent implements AsyncDisposable {
  readonly #namespace: string;
  readonly #dial: AgentDial;
  readonly #pending = new Map<string, Pending>();
  readonly #stopping = new AbortController();
  readonly #living: Promise<void>;
  #connection: AgentConnection | undefined;

  constructor(namespace: string, dial: AgentDial) {
    this.#namespace = namespace;
    this.#dial = dial;
    this.#living = this.#live();
  }

  /** Calls a tool. Fulfils with the first answer, however long that takes; never rejects. */
  call(id: string, tool: string, args: JsonObject): Promise<Answer> {
    const request = { tool, args, timeoutSeconds: callTimeoutSeconds };
    const call: Pending = {
      tool,
      payload: Buffer.from(encodeRequest(id, agentName, request)),
      answer: Promise.withResolvers<Answer>(),
      mayBeThere: false,
      isConfirmed: false,
    };
    this.#pending.set(id, call);
    void this.#send(id, call);
    return call.answer.promise;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopping.abort();
    await this.#living;
  }

  async #live(): Promise<void> {
    const { signal } = this.#stopping;
    const stopped = once(signal, "abort");
    const inbox: AgentInbox = {
      namespace: this.#namespace,
      queue: `${this.#namespace}/q/agent`,
      pattern: responseTopic(this.#namespace, agentName, ">"),
      hear: (topic, payload) => this.#hear(topic, payload),
    };
    while (!signal.aborted) {
      try {
        await using connection = await this.#dial(inbox);
        this.#connection = connection;
        for (const [id, call] of this.#pending) if (!call.isConfirmed) void this.#send(id, call);
        await Promise.race([connection.lost, stopped]);
      } catch {
        // The broker is down, or went down meanwhile.
      }
      this.#connection = undefined;
      await Promise.race([sleep(retryMs), stopped]);
    }
  }

  #hear(topic: string, payload: Uint8Array): void {
    const id = topic.slice(topic.lastIndexOf("/") + 1);
    this.#pending.get(id)?.answer.resolve(decodeAnswer(payload));
    this.#pending.delete(id);
  }

  /** Sends a call until the broker has it, or the connection is another one: then all that may be lost is sent again. */
  async #send(id: string, call: Pending): Promise<void> {
    const connection = this.#connection;
    while (connection !== undefined && connection === this.#connection) {
      const message: CallMessage = {
        topic: invokeTopic(this.#namespace, call.tool),
        payload: call.payload,
        properties: {
          replyTo: responseTopic(this.#namespace, agentName, id),
          timestamp: Date.now(),
          ...(call.mayBeThere && { [resentProperty]: true }),
        },
      };
      const mayHaveBeenThere = call.mayBeThere;
      call.mayBeThere = true;
      try {
        if ((await connection.send(message)) === "confirmed") {
          call.isConfirmed = true;
          return;
        }
        // No worker was there yet to subscribe for the tool.
        call.mayBeThere = mayHaveBeenThere;
      } catch {
        // Whether the broker has it is not known.
      }
      await sleep(retryMs);
    }
  }
}
