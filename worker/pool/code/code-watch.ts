/**
 * Polls the code of tools, every two seconds and after each event of the file system, and numbers
 * its versions.
 */
import type { Runtime } from "../../manifest/manifest.ts";
import type { ToolRunner } from "../../runners/runner.ts";
import { ChangeHints } from "../../support/change-hints.ts";
import type { Clock } from "../../support/clock.ts";
import { type EventLog, logEvent } from "../../telemetry/log-event.ts";
import { type CodeState, fingerprintCode } from "./fingerprint.ts";

/** Milliseconds between two polls of settled code. */
export const pollMs = 2_000;
/** Milliseconds for which changed code stays as it is before it counts as settled. */
export const settleMs = 100;
/** Least pause after a poll of settled code, in lengths of that poll: it takes 5 % of a core. */
const pausePerPoll = 19;
/** The same after a hint and while code changes: 20 %. */
const leastPausePerPoll = 4;
/**
 * Code that changed so many milliseconds before the first poll may have changed during that poll.
 * Exceeds the delay of a file system's clock.
 */
const recentMs = 2_000;

/** Versions of the code that tools of a language may load. */
export interface CodeVersions {
  /** Differs after each change. */
  versionOf(runtime: Runtime): number;
  /**
   * Calls the listener after each change of a version; it must not throw. Disposing the answer ends
   * that.
   */
  onChange(listener: (runtime: Runtime) => void): Disposable;
}

/** What code is polled with. */
export interface CodeWatchOptions {
  readonly runners: ReadonlyMap<Runtime, Pick<ToolRunner, "sources">>;
  readonly clock: Clock;
  readonly log: EventLog<"debug" | "warn">;
  /** {@link pollMs} unless a test sets it. */
  readonly pollMs?: number;
  /** Whether events of the file system shorten pauses. Default: true. */
  readonly hints?: boolean;
  /** Entries above which code counts as always changed. */
  readonly maxEntries?: number;
}

/** The code of one language. */
interface Followed {
  version: number;
  readonly ended: Promise<void>;
}

/**
 * A version changes with the first sign of a change, with each poll that finds more, and once more
 * when a poll finds the same as the one before: code loaded in between may be half of a change, and
 * two writes within a tick of the file system's clock look the same.
 *
 * A whole poll lies between two changes of a version. So once a change is announced, everything
 * written before the announcement before it is in force.
 *
 * Polling of a language begins with the first `versionOf` or `follow`. Its owner disposes it after
 * everything that uses it.
 */
export class CodeWatch implements CodeVersions, AsyncDisposable {
  readonly #options: CodeWatchOptions;
  readonly #followed = new Map<Runtime, Followed>();
  readonly #listeners = new Set<{ readonly call: (runtime: Runtime) => void }>();
  readonly #end = new AbortController();

  constructor(options: CodeWatchOptions) {
    this.#options = options;
  }

  versionOf(runtime: Runtime): number {
    return this.#followedOf(runtime).version;
  }

  /** Begins polling, for listeners that compare no versions. */
  follow(runtime: Runtime): void {
    this.#followedOf(runtime);
  }

  onChange(listener: (runtime: Runtime) => void): Disposable {
    const entry = { call: listener };
    this.#listeners.add(entry);
    return { [Symbol.dispose]: () => void this.#listeners.delete(entry) };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#end.abort();
    await Promise.all([...this.#followed.values()].map(({ ended }) => ended));
  }

  #followedOf(runtime: Runtime): Followed {
    const known = this.#followed.get(runtime);
    if (known !== undefined) return known;
    const runner = this.#options.runners.get(runtime);
    const ended = runner === undefined ? Promise.resolve() : this.#poll(runtime, runner);
    const followed = { version: 0, ended };
    this.#followed.set(runtime, followed);
    return followed;
  }

  /** Polls until the end. */
  async #poll(runtime: Runtime, runner: Pick<ToolRunner, "sources">): Promise<void> {
    const { signal } = this.#end;
    const { clock, log } = this.#options;
    using poller = new Poller(runtime, runner, this.#options);
    try {
      const beganMs = clock.nowMs();
      let known = await poller.poll(signal);
      let isSettled = known.fingerprint !== undefined && known.lastChangeMs < beganMs - recentMs;
      logEvent(log, "code.followed", { runtime, isSettled });
      for (;;) {
        // Too much code to compare is polled as rarely as settled code.
        await poller.pause(isSettled || known.fingerprint === undefined, signal);
        const found = await poller.poll(signal);
        const isSame = found.fingerprint !== undefined && found.fingerprint === known.fingerprint;
        known = found;
        if (isSame && isSettled) continue;
        isSettled = isSame;
        logEvent(log, "code.changed", { runtime, version: this.#announce(runtime), isSettled });
      }
    } catch (error) {
      if (!signal.aborted) throw error;
    }
  }

  #announce(runtime: Runtime): number {
    const followed = this.#followed.get(runtime);
    if (followed === undefined) return 0;
    followed.version++;
    for (const { call } of this.#listeners) call(runtime);
    return followed.version;
  }
}

/** Polls the sources of a language, with pauses that bound the load. */
class Poller implements Disposable {
  readonly #runtime: Runtime;
  readonly #runner: Pick<ToolRunner, "sources">;
  readonly #options: CodeWatchOptions;
  readonly #hints: ChangeHints;
  /** Milliseconds of the last poll. */
  #durationMs = 0;
  /** The failure in the log, until a poll finds none. */
  #logged: string | undefined;

  constructor(runtime: Runtime, runner: Pick<ToolRunner, "sources">, options: CodeWatchOptions) {
    this.#runtime = runtime;
    this.#runner = runner;
    this.#options = options;
    this.#hints = new ChangeHints((error) =>
      logEvent(options.log, "code.file_events_lost", { err: error, runtime }),
    );
  }

  async pause(isLong: boolean, signal: AbortSignal): Promise<void> {
    const { clock } = this.#options;
    const leastMs = Math.max(settleMs, leastPausePerPoll * this.#durationMs);
    const longMs = Math.max(this.#options.pollMs ?? pollMs, pausePerPoll * this.#durationMs);
    await this.#hints.pause({ leastMs, mostMs: isLong ? longMs : leastMs }, clock, signal);
  }

  async poll(signal: AbortSignal): Promise<CodeState> {
    const { clock, hints = true, maxEntries } = this.#options;
    const beganMs = clock.monotonicMs();
    const state = await fingerprintCode(this.#runner.sources, signal, maxEntries);
    this.#durationMs = clock.monotonicMs() - beganMs;
    if (hints) this.#hints.follow(state.directories);
    this.#report(state.failure);
    return state;
  }

  #report(failure: CodeState["failure"]): void {
    const text = failure && `${failure.code} ${failure.path}`;
    if (failure !== undefined && text !== this.#logged)
      logEvent(this.#options.log, "code.unreadable", { runtime: this.#runtime, ...failure });
    this.#logged = text;
  }

  [Symbol.dispose](): void {
    this.#hints[Symbol.dispose]();
  }
}
