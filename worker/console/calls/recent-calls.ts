/**
 * The running and recent calls of a worker, in bounded memory.
 */
import { newId } from "../../support/ids.ts";
import {
  type CallFollower,
  type CallTrace,
  type ReceivedCall,
  followsNothing,
} from "../../telemetry/call-follower.ts";
import type { CallView } from "../api.ts";
import { type CallClock, type CallListener, RecentCall } from "./recent-call.ts";

/** Calls that are kept after their end, and those of them with their statuses and output. */
const maxEndedCalls = 200;
const maxEndedWithTexts = 50;
/** Running calls that are followed, beside the console's own. */
const maxRunningCalls = 1_000;
/** Durations of a window from which percentiles are taken. */
const maxDurations = 4_096;

/** Endings of deliveries that are not calls of their own. */
const withoutDuration: ReadonlySet<string> = new Set(["duplicate", "requeued"]);

/** Calls that ended since the last window was taken. */
export interface CallWindow {
  readonly calls: number;
  readonly errors: number;
  /** Milliseconds, sorted. */
  readonly durationsMs: readonly number[];
}

/** What decides how calls are kept. */
export interface RecentCallsOptions {
  readonly clock: CallClock;
  /** Whether output is kept of calls that the console did not make. */
  readonly keepsOutput: boolean;
  /** Whether the console made the call of this correlation id. */
  readonly isOwn: (correlationId: string) => boolean;
}

/** Follows calls, and tells listeners of their changes. */
export class RecentCalls {
  readonly #options: RecentCallsOptions;
  readonly #calls = new Map<string, RecentCall>();
  readonly #ended: string[] = [];
  readonly #listeners = new Set<CallListener>();
  readonly #toAll: CallListener = {
    call: (id) => this.#listeners.forEach((listener) => listener.call(id)),
    status: (status) => this.#listeners.forEach((listener) => listener.status(status)),
    output: (piece) => this.#listeners.forEach((listener) => listener.output(piece)),
  };
  #received = 0;
  #window: { calls: number; errors: number; durationsMs: number[] } = emptyWindow();

  constructor(options: RecentCallsOptions) {
    this.#options = options;
  }

  /** Follows a delivery that has just been received. */
  follow(received: ReceivedCall, trace?: CallTrace): CallFollower {
    const { clock, keepsOutput, isOwn: isOwnId } = this.#options;
    const { correlationId } = received;
    const isOwn = correlationId !== undefined && isOwnId(correlationId);
    const isFull = this.#calls.size - this.#ended.length >= maxRunningCalls;
    if (isFull && !isOwn) return followsNothing;
    const call = new RecentCall(received, {
      id: isOwn ? correlationId : newId(),
      number: ++this.#received,
      isOwn,
      keepsOutput: keepsOutput || isOwn,
      trace,
      clock,
      listener: this.#toAll,
      onEnd: (ended) => this.#end(ended),
    });
    this.#calls.set(call.id, call);
    return call;
  }

  get(id: string): RecentCall | undefined {
    return this.#calls.get(id);
  }

  /** The newest first. */
  get views(): readonly CallView[] {
    return Array.from(this.#calls.values(), ({ view }) => view).toReversed();
  }

  /** Tells the listener of changes. Disposing the answer ends that. */
  onChange(listener: CallListener): Disposable {
    this.#listeners.add(listener);
    return { [Symbol.dispose]: () => void this.#listeners.delete(listener) };
  }

  /** What ended since this was last called. */
  takeWindow(): CallWindow {
    const window = this.#window;
    this.#window = emptyWindow();
    window.durationsMs.sort((a, b) => a - b);
    return window;
  }

  #end({ id, view: { outcome, durationMs } }: RecentCall): void {
    this.#ended.push(id);
    if (this.#ended.length > maxEndedCalls) this.#calls.delete(this.#ended.shift() ?? "");
    this.#calls.get(this.#ended.at(-1 - maxEndedWithTexts) ?? "")?.forgetTexts();
    if (outcome === null || durationMs === null || withoutDuration.has(outcome)) return;
    const window = this.#window;
    window.calls++;
    if (outcome !== "ok") window.errors++;
    if (window.durationsMs.length < maxDurations) window.durationsMs.push(durationMs);
  }
}

function emptyWindow(): { calls: number; errors: number; durationsMs: number[] } {
  return { calls: 0, errors: 0, durationsMs: [] };
}
