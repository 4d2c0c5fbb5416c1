/**
 * Says in the log when a change of the code has its effect on every call.
 */
import type { Runtime } from "../../manifest/manifest.ts";
import type { Clock } from "../../support/clock.ts";
import { type EventLog, logEvent } from "../../telemetry/log-event.ts";
import type { CodeVersions } from "./code-versions.ts";

/** Milliseconds after a change in which another one makes one notice of both. */
export const noticeAfterMs = 500;

/** What a notice needs to know. */
export interface NoticeOptions {
  readonly versions: Pick<CodeVersions, "versionOf">;
  readonly clock: Pick<Clock, "sleep">;
  readonly log: EventLog<"info">;
}

/** Gives notice of changes. Its owner disposes it, after which it gives none. */
export class CodeNotice implements Disposable {
  readonly #options: NoticeOptions;
  /**
   * Calls with a sandbox, or on their way to one, whose tool has not started: they may have been
   * given the code before.
   */
  readonly #unstarted = new Map<Runtime, Set<Promise<void>>>();
  readonly #end = new AbortController();

  constructor(options: NoticeOptions) {
    this.#options = options;
  }

  /** A call on its way, until its tool has started or never will: then the answer is disposed. */
  begin(runtime: Runtime): Disposable {
    const { promise, resolve } = Promise.withResolvers<void>();
    const calls = this.#unstarted.get(runtime) ?? new Set();
    this.#unstarted.set(runtime, calls.add(promise));
    return {
      [Symbol.dispose]: () => {
        calls.delete(promise);
        resolve();
      },
    };
  }

  /** To be told of a change when no sandbox with the old code waits any more. */
  changed(runtime: Runtime): void {
    void this.#give(runtime).catch((error: unknown) => {
      if (!this.#end.signal.aborted) throw error;
    });
  }

  [Symbol.dispose](): void {
    this.#end.abort();
  }

  async #give(runtime: Runtime): Promise<void> {
    const { versions, clock, log } = this.#options;
    const { signal } = this.#end;
    const version = versions.versionOf(runtime);
    const before = [...(this.#unstarted.get(runtime) ?? [])];
    await clock.sleep(noticeAfterMs, signal);
    await Promise.all(before);
    // A later change gives notice of this one, too.
    if (signal.aborted || versions.versionOf(runtime) !== version) return;
    logEvent(log, "code.in_force", { runtime, version });
  }
}
