/**
 * The waiting sandboxes of one tool under one profile: how many there are, how many there should
 * be, who gets them.
 */
import type { ToolEntry } from "../manifest/manifest.ts";
import type { IdleStartMode, Profile } from "../sandbox/profile.ts";
import { logEvent } from "../telemetry/log-event.ts";
import { Demand, type MemoryRequest } from "./sizing.ts";
import type { PoolStats } from "./starts.ts";
import { SandboxFactory, type FactoryParts } from "./sandbox-factory.ts";
import { type Waiting, isSame } from "./idle-sandbox.ts";

/** What calls leave of the processors: all, some, or none. */
export type Load = "none" | "some" | "full";

/**
 * Milliseconds for which a refill stands back for calls that run. Most have their answer in less
 * than a few, and to spawn a process beside them would delay that. A sandbox of a pool costs as
 * much as a cold start, so one that is made while calls need every processor saves nothing; one of
 * a template costs a tenth of that, which the next call would have to pay anyway.
 */
export const holdMs: Readonly<Record<Load, Readonly<Record<IdleStartMode, number>>>> = {
  none: { pool: 0, template: 0 },
  some: { pool: 10, template: 10 },
  full: { pool: 1_000, template: 25 },
};
/** How much the last refill counts for what the next is expected to take. */
const refillWeight = 0.3;

/**
 * A pool. Its owner retires it when it is not needed any more; what is taken from it belongs to
 * who took it.
 */
export class ToolPool {
  readonly profile: Profile;
  readonly #parts: FactoryParts;
  readonly #factory: SandboxFactory;
  readonly #onChanged: () => void;
  readonly #demand = new Demand();
  /** The oldest first. */
  readonly #waiting = new Set<Waiting>();
  #entry: ToolEntry;
  #isUsual = true;
  #target = 0;
  #making = 0;
  #hits = 0;
  #misses = 0;
  /** What a refill takes; undefined before the first. */
  #refillMs: number | undefined;
  #eachBytes = 0;
  #baseBytes = 0;
  /** Since when there are too few, or when the last was started of those that are made. */
  #lacksSinceMs = 0;

  /** @param onChanged told when there may be something to do for it; it must not throw */
  constructor(parts: FactoryParts, entry: ToolEntry, profile: Profile, onChanged: () => void) {
    this.profile = profile;
    this.#parts = parts;
    this.#entry = entry;
    this.#onChanged = onChanged;
    this.#factory = new SandboxFactory(parts, { entry, profile }, onChanged);
  }

  get entry(): ToolEntry {
    return this.#entry;
  }

  /**
   * An entry with the same key, which may want another number of sandboxes.
   *
   * @param isUsual whether the profile is that of calls which no request tightens: nobody asked for
   *   a `min` of others
   */
  follow(entry: ToolEntry, isUsual: boolean): void {
    this.#entry = entry;
    this.#isUsual = isUsual;
  }

  get isUsual(): boolean {
    return this.#isUsual;
  }

  /** What there is of the number that there should be: the smaller, the more it needs a refill. */
  get fill(): number {
    return (this.#waiting.size + this.#making) / this.#target;
  }

  get isEmpty(): boolean {
    return this.#waiting.size === 0 && !this.#factory.hasTemplate;
  }

  get stats(): PoolStats {
    return {
      tool: this.#entry.name,
      profile: this.profile.name,
      startMode: this.#factory.startMode,
      hasTemplate: this.#factory.hasTemplate,
      waiting: this.#waiting.size,
      making: this.#making,
      target: this.#target,
      hits: this.#hits,
      misses: this.#misses,
      privateBytes: this.#privateBytes(),
      failure: this.#factory.failure,
    };
  }

  /** To be told of each call, before it takes a sandbox. */
  arrive(): void {
    this.#demand.arrive(this.#nowMs(), this.#refillMs ?? 0);
  }

  /**
   * A sandbox for a call, made from what is present: one that waits or, where there is a template,
   * a new one. The caller owns it. Undefined when a cold start is quicker. Throws the signal's
   * reason only.
   *
   * @param host the present parts of the host that the tool has
   */
  async take(host: string | undefined, signal: AbortSignal): Promise<Waiting | undefined> {
    const present = { version: this.#parts.versions.versionOf(this.#entry.runtime), host };
    this.#noteLack();
    for (const waiting of this.#waiting) {
      if (!isSame(waiting.origin, present)) {
        this.#end([waiting]);
        continue;
      }
      this.#waiting.delete(waiting);
      this.#hits++;
      waiting.onLost(() => undefined);
      return waiting;
    }
    this.#misses++;
    return this.#factory.makeNow(present, signal);
  }

  /** What it asks of the memory that all pools share. */
  request(): MemoryRequest {
    const nowMs = this.#nowMs();
    const { min, max } = this.#entry.warm;
    const canWait = this.#factory.startMode !== undefined;
    const bounds = { min: canWait && this.#isUsual ? min : 0, max: canWait ? max : 0 };
    return {
      min: bounds.min,
      wanted: this.#demand.wanted(nowMs, bounds),
      eachBytes: this.#eachBytes,
      baseBytes: this.#baseBytes,
      use: this.#demand.use(nowMs),
    };
  }

  /** Makes `target` the number that should wait, and gives back what is above it. */
  settle(target: number): void {
    this.#noteLack();
    this.#target = target;
    const surplus = [...this.#waiting].slice(0, Math.max(0, this.#waiting.size - target));
    const isLast = target === 0 && !this.isEmpty;
    this.#end(surplus);
    if (!isLast) return;
    this.#factory.giveBack();
    logEvent(this.#parts.log, "sandbox.idle_disposed", { ...this.#facts(), count: surplus.length });
  }

  /** When to make one, on the monotonic clock; Infinity when none is lacking. */
  dueMs(load: Load): number {
    const { startMode, maxAtOnce, notBeforeMs } = this.#factory;
    if (startMode === undefined || !this.#lacks() || this.#making >= maxAtOnce) return Infinity;
    return Math.max(notBeforeMs, this.#lacksSinceMs + holdMs[load][startMode]);
  }

  /** Makes one. Total. */
  async refill(): Promise<void> {
    const beganMs = this.#nowMs();
    this.#making++;
    this.#lacksSinceMs = beganMs;
    const waiting = await this.#factory.make();
    this.#making--;
    if (waiting === undefined) return;
    const tookMs = this.#nowMs() - beganMs;
    const beforeMs = this.#refillMs ?? tookMs;
    this.#refillMs = beforeMs + refillWeight * (tookMs - beforeMs);
    this.#keep(waiting);
    const { kind } = waiting;
    const facts = { ...this.#facts(), startMode: kind, tookMs: Math.round(tookMs) };
    logEvent(this.#parts.log, "sandbox.idle", { ...facts, waiting: this.#waiting.size });
  }

  /**
   * Gives back everything at once, and what is being made as soon as it is; what is known of the
   * code is forgotten.
   */
  retire(reason: Error): void {
    this.#end(this.#waiting);
    this.#factory.retire(reason);
    this.#eachBytes = 0;
    this.#baseBytes = 0;
  }

  #keep(waiting: Waiting): void {
    this.#eachBytes = Math.max(this.#eachBytes, waiting.parked.privateBytes);
    this.#baseBytes = this.#factory.templateBytes;
    this.#waiting.add(waiting);
    waiting.onLost(() => this.#lose(waiting));
    if (waiting.isLost) this.#lose(waiting);
  }

  #lose(waiting: Waiting): void {
    this.#end([waiting]);
    this.#factory.lost(waiting.kind);
    this.#onChanged();
  }

  #end(some: Iterable<Waiting>): void {
    this.#noteLack();
    for (const waiting of some) {
      this.#waiting.delete(waiting);
      waiting.onLost(() => undefined);
      this.#parts.disposal.end(waiting);
    }
  }

  /** To be called before there are fewer, or should be more. */
  #noteLack(): void {
    if (!this.#lacks()) this.#lacksSinceMs = this.#nowMs();
  }

  #lacks(): boolean {
    return this.#waiting.size + this.#making < this.#target;
  }

  #privateBytes(): number {
    const waiting = [...this.#waiting].reduce((sum, { parked }) => sum + parked.privateBytes, 0);
    return waiting + this.#factory.templateBytes;
  }

  #facts(): { readonly tool: string; readonly profile: string } {
    return { tool: this.#entry.name, profile: this.profile.name };
  }

  #nowMs(): number {
    return this.#parts.clock.monotonicMs();
  }
}
