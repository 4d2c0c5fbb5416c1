/**
 * The idle sandboxes of one tool under one profile.
 */
import type { ToolEntry } from "../manifest/manifest.ts";
import type { IdleStartMode } from "../sandbox/profile.ts";
import { logEvent } from "../telemetry/log-event.ts";
import { type IdleSandbox, type PooledTool, isSameOrigin } from "./idle-sandbox.ts";
import { type FactoryParts, SandboxFactory } from "./sandbox-factory.ts";
import { Demand, type MemoryRequest } from "./sizing.ts";
import type { PoolStats } from "./starts.ts";

/** The processors that calls use; or a series of calls by tools for which enough wait. */
export type Load = "none" | "some" | "all" | "series";

/**
 * Milliseconds that a refill waits while calls run: most end sooner, and a process that starts
 * beside them slows them down. A `pool` sandbox costs as much as a cold start, so under full load
 * it saves nothing; a `template` one costs a tenth, which the next call pays otherwise.
 */
export const holdMs: Readonly<Record<Load, Readonly<Record<IdleStartMode, number>>>> = {
  none: { pool: 0, template: 0 },
  some: { pool: 10, template: 10 },
  all: { pool: 1_000, template: 25 },
  series: { pool: 100, template: 100 },
};

/** A pool. Its owner retires it at the end. */
export class ToolPool {
  readonly #parts: FactoryParts;
  readonly #pooled: PooledTool;
  readonly #factory: SandboxFactory;
  readonly #onChanged: () => void;
  readonly #demand = new Demand();
  /** The oldest first. */
  readonly #idle = new Set<IdleSandbox>();
  #bounds = { min: 0, max: 0 };
  #target = 0;
  #making = 0;
  #hits = 0;
  #misses = 0;
  #refills = 0;
  /** Milliseconds of the last refill. */
  #refillMs = 0;
  /** The most that a sandbox and a template of the present code took. */
  #seenBytes = { each: 0, base: 0 };
  /** Start of the present lack, or of the last refill of it. */
  #lacksSinceMs = 0;

  /** @param onChanged called when a refill may be due; it must not throw */
  constructor(parts: FactoryParts, pooled: PooledTool, onChanged: () => void) {
    this.#parts = parts;
    this.#pooled = pooled;
    this.#onChanged = onChanged;
    this.#factory = new SandboxFactory(parts, pooled, onChanged);
  }

  get pooled(): PooledTool {
    return this.#pooled;
  }

  /** The share of the target that is idle or being made. */
  get fill(): number {
    return (this.#idle.size + this.#making) / this.#target;
  }

  get isEmpty(): boolean {
    return this.#idle.size === 0 && !this.#factory.hasTemplate;
  }

  get stats(): PoolStats {
    const idleBytes = [...this.#idle].reduce((sum, { parked }) => sum + parked.privateBytes, 0);
    return {
      ...this.#names,
      startMode: this.#factory.startMode,
      hasTemplate: this.#factory.hasTemplate,
      idle: this.#idle.size,
      making: this.#making,
      target: this.#target,
      hits: this.#hits,
      misses: this.#misses,
      refills: this.#refills,
      privateBytes: idleBytes + this.#factory.templateBytes,
      failure: this.#factory.failure,
    };
  }

  /** Sets the bounds of the target. */
  limit(bounds: ToolEntry["warm"]): void {
    this.#bounds = bounds;
  }

  /** Call for each call, before `take`. */
  arrive(): void {
    this.#demand.arrive(this.#nowMs(), this.#refillMs);
  }

  /**
   * An idle sandbox, or a new one of the template; the caller owns it. Undefined when a cold start
   * is quicker. Throws the signal's reason only.
   *
   * @param host fingerprint of the tool's present parts of the host
   */
  async take(host: string | undefined, signal: AbortSignal): Promise<IdleSandbox | undefined> {
    const version = this.#parts.versions.versionOf(this.#pooled.entry.runtime);
    const present = { version, host };
    this.#noteLack();
    for (const idle of this.#idle) {
      if (!isSameOrigin(idle.origin, present)) {
        this.#dispose([idle]);
        continue;
      }
      this.#idle.delete(idle);
      this.#hits++;
      return idle;
    }
    this.#misses++;
    return this.#factory.fork(present, signal);
  }

  /** Its part in the memory budget of all pools. */
  request(): MemoryRequest {
    const nowMs = this.#nowMs();
    const bounds = this.#factory.startMode === undefined ? { min: 0, max: 0 } : this.#bounds;
    return {
      min: bounds.min,
      wanted: this.#demand.wanted(nowMs, bounds),
      eachBytes: this.#seenBytes.each,
      baseBytes: this.#seenBytes.base,
      use: this.#demand.use(nowMs),
    };
  }

  /** Sets the number of sandboxes that should be idle, and disposes the excess. */
  resize(target: number): void {
    this.#noteLack();
    this.#target = target;
    const excess = [...this.#idle].slice(0, Math.max(0, this.#idle.size - target));
    const isLast = target === 0 && !this.isEmpty;
    this.#dispose(excess);
    if (!isLast) return;
    this.#factory.dropTemplate();
    logEvent(this.#parts.log, "sandbox.idle_disposed", { ...this.#names, count: excess.length });
  }

  /** When the next refill is due, on the monotonic clock; Infinity when none is. */
  dueMs(load: Load): number {
    const { startMode, maxConcurrent, notBeforeMs } = this.#factory;
    if (startMode === undefined || !this.#lacks || this.#making >= maxConcurrent) return Infinity;
    return Math.max(notBeforeMs, this.#lacksSinceMs + holdMs[load][startMode]);
  }

  /** Makes one sandbox. Total. */
  async refill(): Promise<void> {
    const beganMs = this.#nowMs();
    this.#making++;
    this.#lacksSinceMs = beganMs;
    const idle = await this.#factory.make();
    this.#making--;
    if (idle === undefined) return;
    this.#refillMs = this.#nowMs() - beganMs;
    this.#refills++;
    this.#keep(idle);
    const { startMode } = idle;
    const facts = { ...this.#names, startMode, tookMs: Math.round(this.#refillMs) };
    logEvent(this.#parts.log, "sandbox.idle", { ...facts, waiting: this.#idle.size });
  }

  /** Ends the pool because its code or its entry is outdated, which is logged. */
  retire(reason: string): void {
    const count = this.#idle.size;
    if (!this.isEmpty)
      logEvent(this.#parts.log, "sandbox.retired", { ...this.#names, count, reason });
    this.end(reason);
  }

  /** Disposes everything, and drops refills under way. */
  end(reason: string): void {
    this.#dispose(this.#idle);
    this.#factory.retire(new Error(reason));
    this.#seenBytes = { each: 0, base: 0 };
  }

  #keep(idle: IdleSandbox): void {
    const { startMode, parked } = idle;
    const each = Math.max(this.#seenBytes.each, parked.privateBytes);
    this.#seenBytes = { each, base: this.#factory.templateBytes };
    this.#idle.add(idle);
    void parked.lost.then(() => {
      if (!this.#idle.has(idle)) return;
      this.#dispose([idle]);
      this.#factory.lost(startMode);
      this.#onChanged();
    });
  }

  #dispose(some: Iterable<IdleSandbox>): void {
    this.#noteLack();
    for (const idle of some) {
      this.#idle.delete(idle);
      this.#parts.disposal.begin(idle);
    }
  }

  /** Call before the number of idle sandboxes falls, or the target changes. */
  #noteLack(): void {
    if (!this.#lacks) this.#lacksSinceMs = this.#nowMs();
  }

  get #lacks(): boolean {
    return this.#idle.size + this.#making < this.#target;
  }

  get #names(): { readonly tool: string; readonly profile: string } {
    const { entry, profile } = this.#pooled;
    return { tool: entry.name, profile: profile.name };
  }

  #nowMs(): number {
    return this.#parts.clock.monotonicMs();
  }
}
