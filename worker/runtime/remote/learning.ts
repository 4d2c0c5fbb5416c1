/**
 * Learns of the tools of other workers: from their broadcasts, and by asking for each once a
 * connection.
 */
import { addAbortListener } from "node:events";
import { BrokerError, type HeardMessage } from "../../broker/broker.ts";
import type { ReconnectingSession } from "../../broker/reconnecting.ts";
import type { RemoteDirectory } from "../../gateway/remote.ts";
import {
  type Announcement,
  maxAnnouncementBytes,
  readBroadcast,
  readDescription,
} from "../../protocol/discovery/announcement.ts";
import { encodeDiscoveryRequest } from "../../protocol/discovery/messages.ts";
import { discoveryTopic, parseDiscoveryTopic } from "../../protocol/topics.ts";
import type { Clock } from "../../support/clock.ts";
import { Condition } from "../../support/condition.ts";
import { JsonError, parseJson } from "../../support/json/json.ts";
import { abortable } from "../../support/timeout.ts";
import { logEvent } from "../../telemetry/log-event.ts";
import type { Logger } from "../../telemetry/logger.ts";
import type { ExpectedReply, Replies } from "./replies.ts";

/** Milliseconds between two attempts to subscribe or to ask. */
export const listenRetryMs = 30_000;
/** Milliseconds for an answer: the worker may have to run the tool's code for it. */
const answerTimeoutMs = 65_000;

/** Dependencies of {@link Learning}. */
export interface LearningParts {
  readonly session: Pick<ReconnectingSession, "publish" | "subscribe" | "connection">;
  readonly namespace: string;
  readonly directory: RemoteDirectory;
  readonly replies: Replies;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Fills a directory from its start to its disposal. Failures are logged, and concern no call. */
export class Learning implements AsyncDisposable {
  readonly #parts: LearningParts;
  readonly #end = new AbortController();
  /** By name, since the last connection. */
  readonly #asked = new Map<string, ExpectedReply>();
  /** Notified when names may have to be asked for. */
  readonly #toAsk = new Condition();
  #running: Promise<unknown> | undefined;

  constructor(parts: LearningParts) {
    this.#parts = parts;
  }

  /** Listens from the first listed tool on, and asks for those that are new. */
  follow(): void {
    const { names } = this.#parts.directory;
    if (names.size === 0) return;
    this.#toAsk.notify();
    this.#running ??= Promise.all([
      this.#listen("init", (name, { payload }) => this.#learn(name, payload, readBroadcast)),
      this.#listen("removed", (name) => this.#parts.directory.removed(name)),
      this.#ask(),
    ]);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#end.abort(new Error("tools of other workers are no longer followed"));
    await this.#running;
  }

  /** Subscribes, again after a failure, until the disposal. Never rejects. */
  async #listen(
    kind: "init" | "removed",
    onMessage: (name: string, message: HeardMessage) => void,
  ): Promise<void> {
    const { session, namespace, clock, log } = this.#parts;
    const { signal } = this.#end;
    for (let attempt = 1; !signal.aborted; attempt++) {
      try {
        await using heard = await session.subscribe(discoveryTopic(namespace, kind, ">"), signal);
        using _ended = addAbortListener(signal, () => void heard[Symbol.asyncDispose]());
        // Broadcasts since the first attempt were not heard.
        if (attempt > 1) this.#askAgain();
        for await (const message of heard) {
          const name = parseDiscoveryTopic(namespace, kind, message.topic);
          if (name !== undefined) onMessage(name, message);
        }
        return;
      } catch (error) {
        if (signal.aborted) return;
        logEvent(log, "remote_tools.listen_failed", { err: error });
        await clock.sleep(listenRetryMs, signal).catch(() => undefined);
      }
    }
  }

  /** Ignores what is no description. */
  #learn(
    name: string,
    payload: Uint8Array,
    read: (document: unknown) => Announcement | undefined,
  ): void {
    const { directory } = this.#parts;
    if (!directory.names.has(name) || payload.byteLength > maxAnnouncementBytes) return;
    try {
      const announcement = read(parseJson(payload));
      if (announcement) directory.announced(name, announcement, payload.byteLength);
    } catch (error) {
      if (!(error instanceof JsonError)) throw error;
    }
  }

  /** Asks for new names, and for all on each new connection, until the disposal. Never rejects. */
  async #ask(): Promise<void> {
    const { session, clock } = this.#parts;
    const { signal } = this.#end;
    while (!signal.aborted) {
      const { changed } = this.#toAsk;
      const isOver = await this.#askForNew();
      const { connection } = session;
      if (isOver) {
        const ended = AbortSignal.any([connection, signal]);
        await abortable(changed, ended).catch(() => undefined);
        if (!connection.aborted) continue;
        this.#forget();
      }
      // Other workers may have lost their connections, too.
      await clock.sleep(listenRetryMs, signal).catch(() => undefined);
    }
    this.#forget();
  }

  #askAgain(): void {
    this.#forget();
    this.#toAsk.notify();
  }

  /**
   * Workers that tell of a tool only at their start answer for it. False if the same may succeed
   * later on this connection. Never rejects.
   */
  async #askForNew(): Promise<boolean> {
    const { directory, replies, log } = this.#parts;
    const { signal } = this.#end;
    this.#forget((name) => !directory.names.has(name));
    try {
      await replies.start(signal);
      for (const name of directory.names) if (!this.#asked.has(name)) await this.#askFor(name);
      return true;
    } catch (error) {
      if (!signal.aborted) logEvent(log, "remote_tools.listen_failed", { err: error });
      return !(error instanceof BrokerError && error.transient);
    }
  }

  /** Rejects with BrokerError, or the signal's reason. */
  async #askFor(name: string): Promise<void> {
    const { session, namespace, replies } = this.#parts;
    const expected = replies.expect();
    const { id, replyTo, answered } = expected;
    void answered.then(({ payload }) => this.#learn(name, payload, readDescription));
    const topic = discoveryTopic(namespace, "init_request", name);
    const properties = { replyTo, clientId: replies.name, userId: replies.name };
    const payload = encodeDiscoveryRequest(id, name);
    const timeToLiveSeconds = answerTimeoutMs / 1000;
    this.#asked.set(name, expected);
    try {
      await session.publish({ topic, payload, properties, timeToLiveSeconds }, this.#end.signal);
    } catch (error) {
      this.#forget((asked) => asked === name);
      throw error;
    }
  }

  /** Forgets that it has asked for the chosen names, and ignores their answers. */
  #forget(isChosen: (name: string) => boolean = () => true): void {
    for (const [name, expected] of this.#asked) {
      if (!isChosen(name)) continue;
      expected[Symbol.dispose]();
      this.#asked.delete(name);
    }
  }
}
