/**
 * Follows everything that tools may load, by looking at it every two seconds. Events of the file
 * system only make it look sooner.
 */
import type { Runtime } from "../../manifest/manifest.ts";
import type { CodeSource, ToolRunner } from "../../runners/runner.ts";
import type { Clock } from "../../support/clock.ts";
import { type EventLog, logEvent } from "../../telemetry/log-event.ts";
import { ChangeHints } from "./change-hints.ts";
import { type CodeLook, type LookFailure, lookAtCode } from "./fingerprint.ts";
import type { CodeVersions } from "./code-versions.ts";

/** Milliseconds between two looks at code that stays as it is. */
export const pollMs = 2_000;
/** Milliseconds for which changed code has to stay as it is before it counts as settled. */
export const settleMs = 100;
/**
 * Least pause after a look at settled code, in lengths of that look: looks take a twentieth of one
 * core's time.
 */
const pausePerLook = 19;
/** The same before a hint is followed and while code changes: a fifth. */
const leastPausePerLook = 4;
/**
 * What changed less than this many milliseconds before the first look began may have changed during
 * that look. Longer than a file system's clock is behind the machine's.
 */
const recentMs = 2_000;

/** What code is followed with. */
export interface CodeWatchOptions {
  readonly runners: ReadonlyMap<Runtime, Pick<ToolRunner, "sources">>;
  readonly clock: Clock;
  readonly log: EventLog<"debug" | "warn">;
  /** Milliseconds between two looks; {@link pollMs} unless a test is in a hurry. */
  readonly pollMs?: number;
  /**
   * Whether to look sooner on events of the file system; they are used unless a test is without
   * them.
   */
  readonly hints?: boolean;
}

/** The code of one language. */
interface Followed {
  version: number;
  readonly ended: Promise<void>;
}

/**
 * The version of a language's code changes with the first sign of a change, with each look that
 * finds more, and once more when a look finds what the one before it found: what was loaded in
 * between may be half of a change, and files that are written twice within a tick of the file
 * system's clock look the same.
 *
 * Between two changes that are told lies a whole look. So once a change is told, everything that
 * was written before the change told before it has its effect.
 *
 * A language is followed from the first question for its version on, and costs nothing before.
 */
export class CodeWatch implements CodeVersions {
  readonly #options: CodeWatchOptions;
  readonly #followed = new Map<Runtime, Followed>();
  readonly #listeners = new Set<(runtime: Runtime) => void>();
  readonly #end = new AbortController();

  constructor(options: CodeWatchOptions) {
    this.#options = options;
  }

  versionOf(runtime: Runtime): number {
    return (this.#followed.get(runtime) ?? this.#follow(runtime)).version;
  }

  onChange(listener: (runtime: Runtime) => void): Disposable {
    // Two that register the same function have one registration each.
    const own = (runtime: Runtime): void => listener(runtime);
    this.#listeners.add(own);
    return { [Symbol.dispose]: () => void this.#listeners.delete(own) };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#end.abort();
    await Promise.all([...this.#followed.values()].map(({ ended }) => ended));
  }

  #follow(runtime: Runtime): Followed {
    const sources = this.#options.runners.get(runtime)?.sources;
    const ended = sources === undefined ? Promise.resolve() : this.#watch(runtime, sources);
    const followed = { version: 0, ended };
    this.#followed.set(runtime, followed);
    return followed;
  }

  /** Looks until the end. */
  async #watch(runtime: Runtime, sources: readonly CodeSource[]): Promise<void> {
    const { signal } = this.#end;
    using looks = new Looks(runtime, sources, this.#options);
    try {
      await this.#compare(runtime, looks, signal);
    } catch (error) {
      if (!signal.aborted) throw error;
    }
  }

  async #compare(runtime: Runtime, looks: Looks, signal: AbortSignal): Promise<never> {
    const { clock, log } = this.#options;
    const beganMs = clock.nowMs();
    let known = await looks.first(signal);
    let isSettled = known.fingerprint !== undefined && known.lastChangeMs < beganMs - recentMs;
    logEvent(log, "code.followed", { runtime, isSettled });
    for (;;) {
      const found = await looks.next(isSettled, signal);
      const isSame = found.fingerprint !== undefined && found.fingerprint === known.fingerprint;
      known = found;
      if (isSame && isSettled) continue;
      isSettled = isSame;
      logEvent(log, "code.changed", { runtime, version: this.#tell(runtime), isSettled });
    }
  }

  /** Changes the version. Everybody knows before the log says so. */
  #tell(runtime: Runtime): number {
    const followed = this.#followed.get(runtime);
    if (followed === undefined) return 0;
    followed.version++;
    for (const listener of this.#listeners) listener(runtime);
    return followed.version;
  }
}

/** Looks at the same sources again and again, with pauses. */
class Looks implements Disposable {
  readonly #runtime: Runtime;
  readonly #sources: readonly CodeSource[];
  readonly #options: CodeWatchOptions;
  readonly #hints: ChangeHints;
  /** Milliseconds that the last look took. */
  #durationMs = 0;
  /** Whether the last look could be compared with others. */
  #isComplete = true;
  /** The failure that was logged, until a look finds none. */
  #told: string | undefined;

  constructor(runtime: Runtime, sources: readonly CodeSource[], options: CodeWatchOptions) {
    this.#runtime = runtime;
    this.#sources = sources;
    this.#options = options;
    this.#hints = new ChangeHints((error) =>
      logEvent(options.log, "code.file_events_lost", { err: error, runtime }),
    );
  }

  first(signal: AbortSignal): Promise<CodeLook> {
    return this.#look(signal);
  }

  /**
   * The next look, when it is time or, at settled code, when a hint says so. Too much code is
   * looked at as if it had settled.
   */
  async next(isSettled: boolean, signal: AbortSignal): Promise<CodeLook> {
    const { clock } = this.#options;
    const leastMs = Math.max(settleMs, leastPausePerLook * this.#durationMs);
    await clock.sleep(leastMs, signal);
    if (isSettled || !this.#isComplete) {
      const pauseMs = Math.max(this.#options.pollMs ?? pollMs, pausePerLook * this.#durationMs);
      await this.#hints.sleep(Math.max(0, pauseMs - leastMs), clock, signal);
    }
    return this.#look(signal);
  }

  async #look(signal: AbortSignal): Promise<CodeLook> {
    const { clock, hints = true } = this.#options;
    this.#hints.clear();
    const beganMs = clock.monotonicMs();
    const look = await lookAtCode(this.#sources, signal);
    this.#durationMs = clock.monotonicMs() - beganMs;
    this.#isComplete = look.fingerprint !== undefined;
    if (hints) this.#hints.follow(look.directories);
    this.#report(look.failure);
    return look;
  }

  #report(failure: LookFailure | undefined): void {
    const name = failure === undefined ? undefined : `${failure.code} ${failure.path}`;
    if (name !== undefined && name !== this.#told)
      logEvent(this.#options.log, "code.unreadable", { runtime: this.#runtime, ...failure });
    this.#told = name;
  }

  [Symbol.dispose](): void {
    this.#hints[Symbol.dispose]();
  }
}
