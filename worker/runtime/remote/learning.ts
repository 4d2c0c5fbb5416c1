/**
 * Learns of the tools of other workers: from their broadcasts, and by asking once for each.
 */
import type { BrokerSession, BrokerSubscription, HeardMessage } from "../../broker/broker.ts";
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
import { JsonError, parseJson } from "../../support/json/json.ts";
import { logEvent } from "../../telemetry/log-event.ts";
import type { Logger } from "../../telemetry/logger.ts";
import type { Replies } from "./replies.ts";

/** Milliseconds between two attempts to subscribe. */
export const listenRetryMs = 30_000;
/** Milliseconds for an answer: the worker may have to run the tool's code for it. */
const answerTimeoutMs = 65_000;

/** Dependencies of {@link Learning}. */
export interface LearningParts {
  readonly session: Pick<BrokerSession, "publish" | "subscribe">;
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
  readonly #subscriptions: BrokerSubscription[] = [];
  readonly #asked = new Set<string>();
  #listening: Promise<unknown> | undefined;
  #asking: Promise<unknown> = Promise.resolve();

  constructor(parts: LearningParts) {
    this.#parts = parts;
  }

  /** Listens from the first listed tool on, and asks for those that are new. */
  follow(): void {
    const { names } = this.#parts.directory;
    if (names.size === 0) return;
    this.#listening ??= Promise.all([
      this.#listen("init", (name, { payload }) => this.#learn(name, payload, readBroadcast)),
      this.#listen("removed", (name) => this.#parts.directory.removed(name)),
    ]);
    const isNew = [...names].filter((name) => !this.#asked.has(name));
    for (const name of this.#asked) if (!names.has(name)) this.#asked.delete(name);
    for (const name of isNew) this.#asked.add(name);
    this.#asking = Promise.all([this.#asking, this.#ask(isNew)]);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#end.abort(new Error("tools of other workers are no longer followed"));
    await Promise.all(this.#subscriptions.map((heard) => heard[Symbol.asyncDispose]()));
    await Promise.all([this.#listening, this.#asking]);
  }

  /** Subscribes, again after a failure, until the disposal. Never rejects. */
  async #listen(
    kind: "init" | "removed",
    onMessage: (name: string, message: HeardMessage) => void,
  ): Promise<void> {
    const { session, namespace, clock, log } = this.#parts;
    const { signal } = this.#end;
    while (!signal.aborted) {
      try {
        const heard = await session.subscribe(discoveryTopic(namespace, kind, ">"), signal);
        this.#subscriptions.push(heard);
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

  /** Workers that tell of a tool only at their start answer for it. Never rejects. */
  async #ask(names: readonly string[]): Promise<void> {
    const { session, namespace, replies, clock, log } = this.#parts;
    const { signal } = this.#end;
    using expected = new DisposableStack();
    try {
      await replies.start(signal);
      for (const name of names) {
        const { id, replyTo, answered } = expected.use(replies.expect());
        void answered.then(({ payload }) => this.#learn(name, payload, readDescription));
        const topic = discoveryTopic(namespace, "init_request", name);
        const properties = { replyTo, clientId: replies.name, userId: replies.name };
        const payload = encodeDiscoveryRequest(id, name);
        const timeToLiveSeconds = answerTimeoutMs / 1000;
        await session.publish({ topic, payload, properties, timeToLiveSeconds }, signal);
      }
      await clock.sleep(answerTimeoutMs, signal);
    } catch (error) {
      if (!signal.aborted) logEvent(log, "remote_tools.listen_failed", { err: error });
    }
  }
}
