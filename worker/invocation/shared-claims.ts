/**
 * Claims as marks in the store that the workers of a group share: `{call}.1`, `{call}.2` for each run
 * that began, touched as long as its worker lives, and `{call}.answered`.
 *
 * The first run of a repeatable call has a mark only when its connection is lost, so that the usual
 * call costs nothing. docs/adr/0036 has the reasons.
 */
import type { Mark, MarkStore } from "../artifacts/marks.ts";
import type { Delivery } from "../broker/broker.ts";
import type { Clock } from "../support/clock.ts";
import type { Logger } from "../telemetry/logger.ts";
import { type CallClaim, type CallHistory, type Claims, NotBegunError } from "./claims.ts";
import type { RunningEntry } from "./ledger.ts";
import { mayHaveBegun } from "./redelivery.ts";

/**
 * Milliseconds before the marks of a call that came again are read, and as many more by chance: its
 * former worker notices the loss and marks the run, and this connection proves itself.
 */
export const settlingMs = 1_000;
/** Milliseconds between two looks at a run of another worker. */
export const lookMs = 500;
/** Milliseconds after which a mark without a touch is one of a dead worker. */
export const goneMs = 10_000;
/** Milliseconds between two touches. */
export const touchMs = 3_000;
/** Milliseconds between two looks at the own runs. */
export const tickMs = 250;
/** A tick that comes so much later, in milliseconds, means that this process stood still. */
export const stallMs = 5_000;
/** Bytes of an answer that is kept for a request that comes twice. */
export const maxKeptAnswerBytes = 1024 * 1024;
/** Milliseconds that marks are kept: longer than a broker keeps a call between two deliveries. */
export const markLifetimeMs = 24 * 60 * 60_000;
/** Milliseconds between two sweeps. */
export const sweepMs = 60 * 60_000;
/** Milliseconds after its end for which a run is kept alive while its answer waits for the broker. */
export const unpublishedMs = 60_000;
/** Milliseconds for one operation on marks. */
const operationMs = 10_000;

const nothing = new Uint8Array();

/** What claims work with. */
export interface SharedClaimsParts {
  readonly marks: MarkStore;
  readonly clock: Clock;
  readonly log: Logger;
}

/** The claims of one worker. */
export class SharedClaims implements Claims {
  readonly parts: SharedClaimsParts;
  readonly #begun = new Set<SharedClaim>();
  readonly #timer: NodeJS.Timeout;
  readonly #stopped = new AbortController();
  #pending: Promise<unknown> = Promise.resolve();
  #tickedMs: number;
  #sweptMs = -Infinity;
  #provenMs = -Infinity;

  constructor(parts: SharedClaimsParts) {
    this.parts = parts;
    this.#tickedMs = parts.clock.monotonicMs();
    this.#timer = setInterval(() => this.tick(), tickMs).unref();
  }

  open(key: string, delivery: Delivery, entry: Pick<RunningEntry, "isLost">): SharedClaim {
    return new SharedClaim(this, Buffer.from(key, "base64").toString("hex"), delivery, entry);
  }

  /** The claims whose runs are looked at, until they are disposed. */
  get begun(): Set<SharedClaim> {
    return this.#begun;
  }

  /** Looks at the own runs, and at the clock. */
  tick(): void {
    const nowMs = this.parts.clock.monotonicMs();
    if (nowMs - this.#tickedMs > stallMs) this.#provenMs = nowMs + settlingMs;
    this.#tickedMs = nowMs;
    for (const claim of this.#begun) void this.keep(() => claim.look(nowMs));
    if (nowMs - this.#sweptMs < sweepMs) return;
    this.#sweptMs = nowMs;
    void this.keep(() => this.parts.marks.sweep(markLifetimeMs, this.#stopped.signal));
  }

  /** After this process stood still: waits until a connection that was lost meanwhile says so. */
  async prove(signal: AbortSignal): Promise<void> {
    const { clock } = this.parts;
    // What waits for the disk wakes before a timer does.
    if (clock.monotonicMs() - this.#tickedMs > stallMs) this.tick();
    const leftMs = this.#provenMs - clock.monotonicMs();
    if (leftMs > 0) await clock.sleep(leftMs, signal);
  }

  /** Runs an operation whose failure changes nothing for the call. */
  keep(operation: () => Promise<unknown>): Promise<void> {
    const kept = operation().then(
      () => undefined,
      (error: unknown) => {
        if (this.#stopped.signal.aborted) return;
        this.parts.log.warn({ err: error }, "mark of a call could not be kept");
      },
    );
    this.#pending = Promise.all([this.#pending, kept]);
    return kept;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#timer);
    this.#stopped.abort();
    await this.#pending;
  }
}

class SharedClaim implements CallClaim {
  readonly isCertain = true;
  isTaken = false;
  readonly #claims: SharedClaims;
  readonly #name: string;
  readonly #entry: Pick<RunningEntry, "isLost">;
  /** Whether another worker may know of the call. */
  #isContested: boolean;
  /** By others. */
  #runs = 0;
  /** That of the own run. */
  #mark: string | undefined;
  #touchedMs = 0;
  #aliveUntilMs = Infinity;
  #isBusy = false;

  constructor(
    claims: SharedClaims,
    name: string,
    delivery: Delivery,
    entry: Pick<RunningEntry, "isLost">,
  ) {
    this.#claims = claims;
    this.#name = name;
    this.#entry = entry;
    this.#isContested = mayHaveBegun(delivery);
  }

  async history(signal: AbortSignal): Promise<CallHistory> {
    if (!this.#isContested) return { kind: "open", runs: 0, mayHaveBegun: false };
    const { clock, log } = this.#claims.parts;
    if (!this.isTaken) await clock.sleep(settlingMs * (1 + Math.random()), signal);
    this.isTaken = false;
    try {
      return await this.#read(signal);
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof NotBegunError) throw error;
      log.warn({ err: error }, "marks of a call could not be read");
      return { kind: "open", runs: 0, mayHaveBegun: true };
    }
  }

  async begin(isRepeatable: boolean, signal: AbortSignal): Promise<void> {
    const { marks, clock } = this.#claims.parts;
    await this.#claims.prove(signal);
    this.#requireDelivery();
    if (this.#isContested || !isRepeatable) {
      const mark = this.#markOf(this.#runs + 1);
      if (!(await marks.create(mark, nothing, limited(signal)))) {
        this.isTaken = true;
        this.#isContested = true;
        throw new NotBegunError("another worker runs the call");
      }
      this.#mark = mark;
      this.#touchedMs = clock.monotonicMs();
    }
    this.#claims.begun.add(this);
  }

  async isAnswered(): Promise<boolean> {
    // A connection that was lost just before the end: the answer waits for the next one.
    const { clock } = this.#claims.parts;
    this.#aliveUntilMs = clock.monotonicMs() + unpublishedMs;
    if (this.#claims.begun.has(this)) await this.#claims.keep(() => this.look(clock.monotonicMs()));
    if (this.#mark === undefined) return false;
    let answer: Mark | undefined;
    await this.#claims.keep(async () => (answer = await this.#answer(limited())));
    return answer !== undefined;
  }

  async answered(payload: Uint8Array): Promise<void> {
    if (this.#mark === undefined && !this.#isContested && !this.#entry.isLost()) return;
    const content = payload.byteLength > maxKeptAnswerBytes ? nothing : payload;
    const { marks } = this.#claims.parts;
    await this.#claims.keep(() => marks.create(this.#answeredMark, content, limited()));
  }

  async release(): Promise<void> {
    this.#claims.begun.delete(this);
    const mark = this.#mark;
    if (mark === undefined) return;
    await this.#claims.keep(() => this.#claims.parts.marks.remove(mark, limited()));
  }

  /** Touches the mark of the own run, or makes one when the broker hands the call to others. */
  async look(nowMs: number): Promise<void> {
    if (this.#isBusy || nowMs > this.#aliveUntilMs) return;
    this.#isBusy = true;
    try {
      const { marks } = this.#claims.parts;
      if (this.#mark === undefined) {
        if (!this.#entry.isLost()) return;
        const mark = this.#markOf(1);
        if (await marks.create(mark, nothing, limited())) this.#mark = mark;
      } else if (nowMs - this.#touchedMs >= touchMs) await marks.touch(this.#mark, limited());
      else return;
      this.#touchedMs = nowMs;
    } finally {
      this.#isBusy = false;
    }
  }

  [Symbol.dispose](): void {
    this.#claims.begun.delete(this);
  }

  async #read(signal: AbortSignal): Promise<CallHistory> {
    const { clock } = this.#claims.parts;
    let [seen, seenMs] = ["", 0];
    for (;;) {
      this.#requireDelivery();
      const answer = await this.#answer(limited(signal));
      if (answer !== undefined) return answered(answer);
      const latest = await this.#latestRun(limited(signal));
      const runs = this.#runs;
      if (latest === undefined) return { kind: "open", runs, mayHaveBegun: runs > 0 };
      const nowMs = clock.monotonicMs();
      const now = `${runs} ${latest.stamp}`;
      if (now !== seen) [seen, seenMs] = [now, nowMs];
      else if (nowMs - seenMs >= goneMs) return { kind: "open", runs, mayHaveBegun: true };
      await clock.sleep(lookMs, signal);
    }
  }

  /** Counts the runs of others. */
  async #latestRun(signal: AbortSignal): Promise<Mark | undefined> {
    const { marks } = this.#claims.parts;
    let latest: Mark | undefined;
    for (let runs = 0; ; runs++) {
      const mark = await marks.read(this.#markOf(runs + 1), signal);
      this.#runs = runs;
      if (mark === undefined) return latest;
      latest = mark;
    }
  }

  #answer(signal: AbortSignal): Promise<Mark | undefined> {
    return this.#claims.parts.marks.read(this.#answeredMark, signal);
  }

  #requireDelivery(): void {
    if (this.#entry.isLost()) throw new NotBegunError("the connection of the call is lost");
  }

  #markOf(run: number): string {
    return `${this.#name}.${run}`;
  }

  get #answeredMark(): string {
    return `${this.#name}.answered`;
  }
}

function answered({ content }: Mark): CallHistory {
  return { kind: "answered", answer: content.byteLength === 0 ? undefined : content };
}

/** A store that hangs must not hold a call for ever. */
function limited(signal?: AbortSignal): AbortSignal {
  const limit = AbortSignal.timeout(operationMs);
  return signal === undefined ? limit : AbortSignal.any([signal, limit]);
}
