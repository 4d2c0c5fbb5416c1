/**
 * Logs when a change of the code is in force for every call.
 */
import type { Runtime } from "../../manifest/manifest.ts";
import type { Clock } from "../../support/clock.ts";
import { type EventLog, logEvent } from "../../telemetry/log-event.ts";
import type { CodeVersions } from "./code-watch.ts";

/** Milliseconds after a change in which a further change shares its notice. */
export const noticeAfterMs = 500;

/** What notices are given with. */
export interface NoticeOptions {
  readonly versions: Pick<CodeVersions, "versionOf">;
  readonly clock: Pick<Clock, "sleep">;
  readonly log: EventLog<"info">;
}

/** Gives notices until its owner disposes it. */
export class CodeNotice implements Disposable {
  readonly #options: NoticeOptions;
  /** Calls whose tool has not started: they may have a sandbox with the code before. */
  readonly #unstarted = new Map<Promise<void>, Runtime>();
  readonly #end = new AbortController();

  constructor(options: NoticeOptions) {
    this.#options = options;
  }

  /** A call on its way, until its tool starts or never will: then the answer is disposed. */
  begin(runtime: Runtime): Disposable {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#unstarted.set(promise, runtime);
    return {
      [Symbol.dispose]: () => {
        this.#unstarted.delete(promise);
        resolve();
      },
    };
  }

  /** Call when no idle sandbox has the old code any more. */
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
    const before = [...this.#unstarted].flatMap(([call, of]) => (of === runtime ? [call] : []));
    await clock.sleep(noticeAfterMs, signal);
    await Promise.all(before);
    // A later change gives notice of this one, too.
    if (signal.aborted || versions.versionOf(runtime) !== version) return;
    logEvent(log, "code.in_force", { runtime, version });
  }
}
