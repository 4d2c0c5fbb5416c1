/**
 * Keeps the totals of sandboxes that the kernel does not keep, by looking at what they use.
 */
import { type WatchedSandbox, Watched } from "./usage-sampler.ts";
import type { Amount } from "./disk-usage.ts";
import type { Usage } from "../sandbox.ts";

/** Milliseconds between two looks at all watched sandboxes. */
export const lookMs = 20;
/** Milliseconds between two looks at one that only waits for its call. */
export const restingLookMs = 1_000;
/**
 * Least pause between two looks, in lengths of a look: a sandbox full of processes must not hold
 * the worker up. It is the processor time of a look that counts, so that who keeps all processors
 * busy is not looked at less often.
 */
const pausePerLook = 4;
/** The same while a sandbox may have put too much on the disk. */
const urgentPausePerLook = 1;
/**
 * Milliseconds of a look that go into the files of all sandboxes together; a walk through many goes
 * on with the next.
 */
const filesMs = 4;
/** Milliseconds besides, for all those together that may have put too much on the disk. */
const urgentFilesMs = 16;
/**
 * Work directories of which a walk may be under way between two looks. Each keeps a descriptor for
 * each directory that it is in.
 */
const maxWalks = 32;

/** A sandbox that is being watched. Disposed when its first process is gone. */
export interface Watch extends Disposable {
  /** What was used, as far as was seen. */
  readonly usage: Omit<Usage, "wallMs">;
  /**
   * The sandbox only waits for its call: from now on it is looked at every {@link restingLookMs}.
   */
  rest(): void;
  /**
   * It is about to get its call, and is looked at as others are, the first time after {@link
   * lookMs} at most: a look takes as long as many a call does. `staged` is what the call brings.
   */
  beginCall(staged: Amount): void;
  /** To be called when the command has ended and the first process may still be there. */
  lookLast(): void;
}

/**
 * Looks at all watched sandboxes every {@link lookMs}, and one after the other at those that wait
 * for their calls. Between two looks a sandbox can use more than its limits; how much more is
 * measured in docs/sandbox.md.
 */
export class Guard {
  readonly #watched = new Set<Watched>();
  /** Those that wait for their calls, the one first that was looked at longest ago. */
  readonly #resting = new Set<Watched>();
  readonly #onLooked: () => void;
  #restingTimer: NodeJS.Timeout | undefined;
  #timer: NodeJS.Timeout | undefined;
  #turn: Promise<void> = Promise.resolve();

  /** @param onLooked told after each look at all watched sandboxes; it must not throw */
  constructor(onLooked: () => void = () => undefined) {
    this.#onLooked = onLooked;
  }

  /** Watches a sandbox until the returned watch is disposed. */
  watch(sandbox: WatchedSandbox): Watch {
    const watched = new Watched(sandbox, (task) => (this.#turn = this.#turn.then(task)));
    this.#watchClosely(watched);
    return {
      get usage() {
        return watched.usage;
      },
      rest: () => this.#rest(watched),
      beginCall: (staged) => {
        watched.stage(staged);
        this.#drop(watched);
        this.#watchClosely(watched);
      },
      lookLast: () => watched.lookLast(),
      [Symbol.dispose]: () => {
        watched[Symbol.dispose]();
        this.#drop(watched);
      },
    };
  }

  #watchClosely(watched: Watched): void {
    this.#watched.add(watched);
    this.#timer ??= this.#lookIn(lookMs);
  }

  #rest(watched: Watched): void {
    this.#drop(watched);
    if (watched.isOver) return;
    this.#resting.add(watched);
    this.#restingTimer ??= this.#lookAtRestingIn(restingLookMs);
  }

  #drop(watched: Watched): void {
    this.#watched.delete(watched);
    this.#resting.delete(watched);
    if (this.#watched.size === 0) {
      clearTimeout(this.#timer);
      this.#timer = undefined;
    }
    if (this.#resting.size === 0) {
      clearTimeout(this.#restingTimer);
      this.#restingTimer = undefined;
    }
  }

  #lookIn(delayMs: number): NodeJS.Timeout {
    return setTimeout(() => this.#look(), delayMs).unref();
  }

  #look(): void {
    const beganMs = ownCpuMs();
    const all = [...this.#watched];
    const urgent = new Set(all.filter(({ isUrgent }) => isUrgent));
    let walks = this.#walks;
    for (const watched of all) {
      const walkMs = urgent.has(watched) ? urgentFilesMs / urgent.size : 0;
      const wasWalking = watched.isWalking;
      watched.look(filesMs / all.length, walkMs, walks < maxWalks);
      walks += Number(watched.isWalking) - Number(wasWalking);
      if (watched.isOver) this.#watched.delete(watched);
    }
    const pause = urgent.size > 0 ? urgentPausePerLook : pausePerLook;
    const tookMs = ownCpuMs() - beganMs;
    this.#timer =
      this.#watched.size === 0 ? undefined : this.#lookIn(Math.max(lookMs, pause * tookMs));
    this.#onLooked();
  }

  /** Walks through work directories that are under way. */
  get #walks(): number {
    return [...this.#watched, ...this.#resting].filter(({ isWalking }) => isWalking).length;
  }

  #lookAtRestingIn(delayMs: number): NodeJS.Timeout {
    return setTimeout(() => this.#lookAtOneResting(), delayMs).unref();
  }

  /** One at a time, so that many hold nobody up. */
  #lookAtOneResting(): void {
    const beganMs = ownCpuMs();
    for (const watched of [...this.#resting].slice(0, 1)) {
      this.#resting.delete(watched);
      watched.look(filesMs, urgentFilesMs, this.#walks < maxWalks);
      if (!watched.isOver) this.#resting.add(watched);
    }
    const pauseMs = pausePerLook * (ownCpuMs() - beganMs);
    const shareMs = restingLookMs / this.#resting.size;
    this.#restingTimer =
      this.#resting.size === 0 ? undefined : this.#lookAtRestingIn(Math.max(shareMs, pauseMs));
  }
}

/** Processor time of this thread. */
function ownCpuMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}
