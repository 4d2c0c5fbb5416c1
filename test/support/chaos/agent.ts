/**
 * An agent that lives through anything: its answers wait in a durable queue, and what the broker
 * has not confirmed is sent again. What differs between brokers is how it connects.
 */
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { type Answer, decodeAnswer, encodeRequest } from "../../../harness/messages.ts";
import { encodeCancel } from "../../../worker/protocol/messages/cancel.ts";
import { resentProperty } from "../../../worker/protocol/messages/request.ts";
import { cancelTopic, invokeTopic, responseTopic } from "../../../worker/protocol/topics.ts";
import type { JsonObject } from "../../../worker/support/json/json.ts";
import type { ChaosHistory } from "./history.ts";
import { chaosAgentName } from "./wire/wire.ts";

/** Milliseconds until the next attempt to connect, or to send what nobody subscribed to. */
const retryMs = 200;

/** Longer than any chaos: a request that comes late is run all the same. */
const timeoutSeconds = 600;

/** A request on its way. */
export interface RequestMessage {
  readonly topic: string;
  readonly payload: Buffer;
  readonly properties: Readonly<Record<string, string | number | boolean>>;
}

/** A connection of the agent. Its owner disposes it. */
export interface AgentConnection extends AsyncDisposable {
  /**
   * Publishes, guaranteed. Resolves when the broker has said whether it has the message, or that
   * nobody subscribes to the topic. Whoever's connection ends before hears nothing, or a rejection.
   */
  send(message: RequestMessage): Promise<"confirmed" | "unroutable">;
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

/**
 * Connects, and takes answers from then on. Rejects when it cannot, and leaves nothing open then.
 */
export type AgentDial = (inbox: AgentInbox) => Promise<AgentConnection>;

interface Pending {
  readonly tool: string;
  readonly payload: Buffer;
  readonly ending: PromiseWithResolvers<string>;
  /** Whether the broker may have it without having said so. */
  mayBeThere: boolean;
  isConfirmed: boolean;
}

/** An agent. Begins to connect when it is made; its owner disposes it after the last request. */
export class ChaosAgent implements AsyncDisposable {
  readonly #namespace: string;
  readonly #dial: AgentDial;
  readonly #history: ChaosHistory;
  readonly #pending = new Map<string, Pending>();
  readonly #stopping = new AbortController();
  readonly #living: Promise<void>;
  #connection: AgentConnection | undefined;

  constructor(namespace: string, dial: AgentDial, history: ChaosHistory) {
    this.#namespace = namespace;
    this.#dial = dial;
    this.#history = history;
    this.#living = this.#live();
  }

  /**
   * Asks for a tool. Fulfils with how the first answer says that it ended, however long that takes;
   * never rejects.
   */
  request(id: string, tool: string, args: JsonObject): Promise<string> {
    const pending: Pending = {
      tool,
      payload: Buffer.from(encodeRequest(id, chaosAgentName, { tool, args, timeoutSeconds })),
      ending: Promise.withResolvers<string>(),
      mayBeThere: false,
      isConfirmed: false,
    };
    this.#pending.set(id, pending);
    void this.#send(id, pending);
    return pending.ending.promise;
  }

  /** Cancels a request, if there is a connection. */
  cancel(request: string): void {
    this.#history.tell({ kind: "cancelled", request });
    const message: RequestMessage = {
      topic: cancelTopic(this.#namespace, request),
      payload: Buffer.from(encodeCancel(request)),
      // By its reply topic it would look like the request itself on its way.
      properties: { clientId: chaosAgentName, timestamp: Date.now() },
    };
    this.#connection?.send(message).catch(() => undefined);
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
      pattern: responseTopic(this.#namespace, chaosAgentName, ">"),
      hear: (topic, payload) => this.#hear(topic, payload),
    };
    while (!signal.aborted) {
      try {
        await using connection = await this.#dial(inbox);
        this.#connection = connection;
        for (const [id, pending] of this.#pending)
          if (!pending.isConfirmed) void this.#send(id, pending);
        await Promise.race([connection.lost, stopped]);
      } catch {
        // The broker is down, or went down meanwhile.
      }
      this.#connection = undefined;
      await Promise.race([sleep(retryMs), stopped]);
    }
  }

  #hear(topic: string, payload: Uint8Array): void {
    const request = topic.slice(topic.lastIndexOf("/") + 1);
    const answer = decodeAnswer(payload);
    const ending = endingOf(answer);
    const run = answer.kind === "success" ? Number(answer.toolResult["run"]) : undefined;
    this.#history.tell({ kind: "heard", request, ending, run });
    this.#pending.get(request)?.ending.resolve(ending);
    this.#pending.delete(request);
  }

  /**
   * Sends a request until the broker has it, or the connection is another one: then all that may be
   * lost is sent again.
   */
  async #send(request: string, pending: Pending): Promise<void> {
    const connection = this.#connection;
    while (connection !== undefined && connection === this.#connection) {
      const message: RequestMessage = {
        topic: invokeTopic(this.#namespace, pending.tool),
        payload: pending.payload,
        properties: {
          replyTo: responseTopic(this.#namespace, chaosAgentName, request),
          clientId: chaosAgentName,
          timestamp: Date.now(),
          ...(pending.mayBeThere && { [resentProperty]: true }),
        },
      };
      const mayHaveBeenThere = pending.mayBeThere;
      pending.mayBeThere = true;
      this.#history.tell({ kind: "sent", request });
      try {
        if ((await connection.send(message)) === "confirmed") {
          pending.isConfirmed = true;
          return;
        }
        // No worker was there yet to subscribe for the tool.
        pending.mayBeThere = mayHaveBeenThere;
        this.#history.tell({ kind: "unheard", request });
      } catch {
        // Whether the broker has it is not known.
      }
      await sleep(retryMs);
    }
  }
}

function endingOf(answer: Answer): string {
  return answer.kind === "error" ? answer.code : answer.kind;
}
