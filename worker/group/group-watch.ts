/**
 * Announces this worker's tools to the namespace, and compares the announcements of other workers.
 */
import { randomUUID } from "node:crypto";
import { type MarkStore, storeIdOf } from "../artifacts/marks.ts";
import type { BrokerSession, BrokerSubscription } from "../broker/broker.ts";
import {
  type Announcement,
  decodeAnnouncement,
  encodeAnnouncement,
} from "../protocol/messages/announcement.ts";
import { workersTopic } from "../protocol/topics.ts";
import type { Clock } from "../support/clock.ts";
import { logEvent } from "../telemetry/log-event.ts";
import type { Logger } from "../telemetry/logger.ts";
import { Conflicts } from "./conflicts.ts";

/** Milliseconds between two announcements of a worker. */
export const announceMs = 30_000;

/** Dependencies of a group watch. */
export interface GroupWatchParts {
  readonly session: Pick<BrokerSession, "publish" | "subscribe">;
  readonly namespace: string;
  readonly workerId: string;
  readonly group: string;
  /** Present tools of the group. */
  tools(): Iterable<string>;
  readonly marks: MarkStore | undefined;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Announces until its disposal. Failures are logged, and concern no call. */
export class GroupWatch implements AsyncDisposable {
  readonly #parts: GroupWatchParts;
  readonly #instance = randomUUID();
  readonly #stopped = new AbortController();
  readonly #conflicts: Conflicts;
  readonly #ended: Promise<void>;
  /** Id of the store of marks; undefined until its first read. */
  #store: string | undefined;
  #subscription: BrokerSubscription | undefined;
  #reported: readonly string[] = [];
  #isFailing = false;

  /** Starts announcing. */
  constructor(parts: GroupWatchParts) {
    this.#parts = parts;
    this.#conflicts = new Conflicts(parts.clock);
    this.#ended = this.#run(this.#stopped.signal);
  }

  /** Present conflicts, as messages for the operator. */
  get conflicts(): readonly string[] {
    return this.#conflicts.current;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopped.abort();
    await this.#subscription?.[Symbol.asyncDispose]();
    await this.#ended;
  }

  async #run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      try {
        await this.#announce(signal);
        this.#isFailing = false;
        await this.#parts.clock.sleep(announceMs, signal);
      } catch (error) {
        if (signal.aborted) return;
        await this.#pause(error, signal);
      }
    }
  }

  async #pause(error: unknown, signal: AbortSignal): Promise<void> {
    const { log, clock } = this.#parts;
    if (!this.#isFailing) logEvent(log, "group.watch_failed", { err: error });
    this.#isFailing = true;
    await clock.sleep(announceMs, signal).catch(() => undefined);
  }

  async #announce(signal: AbortSignal): Promise<void> {
    const { session, namespace, marks } = this.#parts;
    if (marks !== undefined) this.#store ??= await storeIdOf(marks, signal);
    const topic = workersTopic(namespace);
    if (this.#subscription === undefined) {
      this.#subscription = await session.subscribe(topic, signal);
      void this.#listen(this.#subscription);
    }
    const payload = encodeAnnouncement(this.#own());
    await session.publish({ topic, payload, timeToLiveSeconds: announceMs / 1000 }, signal);
  }

  async #listen(subscription: BrokerSubscription): Promise<void> {
    for await (const { payload } of subscription) {
      const other = decodeAnnouncement(payload);
      if (other !== undefined) this.#compare(other);
    }
  }

  #compare(other: Announcement): void {
    this.#conflicts.record(this.#own(), other);
    const { conflicts } = this;
    for (const conflict of conflicts) {
      if (this.#reported.includes(conflict)) continue;
      logEvent(this.#parts.log, "group.conflict", { conflict });
    }
    this.#reported = conflicts;
  }

  #own(): Announcement {
    const { workerId: worker, group, tools } = this.#parts;
    const store = this.#store ?? null;
    return { instance: this.#instance, worker, group, store, tools: [...tools()] };
  }
}
