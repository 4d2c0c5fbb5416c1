/**
 * Makes the idle sandboxes of one tool, by the best start mode that works with its present code.
 */
import type { IdleStartMode } from "../sandbox/profile.ts";
import { SandboxError } from "../sandbox/sandbox.ts";
import type { Clock } from "../support/clock.ts";
import { withTimeout } from "../support/timeout.ts";
import { logEvent } from "../telemetry/log-event.ts";
import type { Logger } from "../telemetry/logger.ts";
import type { Disposal } from "./disposal.ts";
import {
  type IdleParts,
  type IdleSandbox,
  type Origin,
  type PooledTemplate,
  type PooledTool,
  fork,
  isSameOrigin,
  makePooled,
  openTemplate,
} from "./idle-sandbox.ts";
import { startModesOf } from "./start-modes.ts";
import type { IdleFailure } from "./starts.ts";

/** Milliseconds for a sandbox of a template, many times the usual: then a call starts cold. */
export const forkTimeoutMs = 1_000;
/** Bounds of the pauses after failures, in milliseconds. Each pause doubles the one before. */
export const retry = { firstMs: 500, lastMs: 60_000 } as const;
/** Milliseconds without a failure after which pauses are short again. */
export const calmMs = 2 * retry.lastMs;
/** Milliseconds after a change of the code before it is loaded: changes seldom come alone. */
export const loadDelayMs = 200;

/** What factories share. */
export interface FactoryParts extends IdleParts {
  readonly clock: Clock;
  readonly log: Logger;
  readonly disposal: Disposal;
}

/** A factory. Its owner retires it at the end. */
export class SandboxFactory {
  readonly #parts: FactoryParts;
  readonly #pooled: PooledTool;
  readonly #startModes: readonly IdleStartMode[];
  readonly #log: Logger;
  readonly #onChanged: () => void;
  /** Start modes that turned out unfit. */
  #unfit = 0;
  #template: PooledTemplate | undefined;
  /** Aborts the creation of sandboxes that are not wanted any more. */
  #generation = new AbortController();
  #failure: IdleFailure | undefined;
  #failedAtMs = -Infinity;
  #retryMs: number = retry.firstMs;
  #notBeforeMs = -Infinity;

  /** @param onChanged called when `notBeforeMs` or `startMode` changed; it must not throw */
  constructor(parts: FactoryParts, pooled: PooledTool, onChanged: () => void) {
    this.#parts = parts;
    this.#pooled = pooled;
    this.#startModes = startModesOf(pooled.entry, pooled.profile);
    this.#log = parts.log.child({ tool: pooled.entry.name, profile: pooled.profile.name });
    this.#onChanged = onChanged;
  }

  /** The present start mode; undefined when every one is unfit. */
  get startMode(): IdleStartMode | undefined {
    return this.#startModes[this.#unfit];
  }

  /** Bytes of memory of the template; 0 without one. */
  get templateBytes(): number {
    return this.#template?.template.privateBytes ?? 0;
  }

  get hasTemplate(): boolean {
    return this.#template !== undefined;
  }

  /** Undefined when the last attempt succeeded. */
  get failure(): IdleFailure | undefined {
    return this.#failure;
  }

  /** Earliest time of the next attempt, on the monotonic clock. */
  get notBeforeMs(): number {
    return this.#notBeforeMs;
  }

  /** Attempts at a time: the first one starts the template. */
  get maxConcurrent(): number {
    return this.startMode === "template" && !this.hasTemplate ? 1 : Infinity;
  }

  /** Makes a sandbox; the caller owns it. Total: logs a failure and delays the next attempt. */
  async make(): Promise<IdleSandbox | undefined> {
    return this.#attempt(undefined, async (signal) => {
      if (this.startMode === "pool") return makePooled(this.#parts, this.#pooled, signal);
      const template = this.#template ?? (await this.#openTemplate(signal));
      return template && this.#forkFrom(template, signal);
    });
  }

  /**
   * Makes a sandbox for a waiting call, if there is a template of this origin; the caller owns it.
   * Throws the signal's reason only.
   */
  async fork(origin: Origin, signal: AbortSignal): Promise<IdleSandbox | undefined> {
    const template = this.#template;
    if (template === undefined) return undefined;
    if (isSameOrigin(template.origin, origin))
      return this.#attempt(signal, (either) => this.#forkFrom(template, either));
    this.dropTemplate();
    return undefined;
  }

  /** Ends the template; the next attempt starts another one. */
  dropTemplate(): void {
    if (this.#template !== undefined) this.#parts.disposal.begin(this.#template);
    this.#template = undefined;
  }

  /** Ends the template and attempts under way, and tries every start mode again. */
  retire(reason: Error): void {
    this.dropTemplate();
    this.#generation.abort(reason);
    this.#generation = new AbortController();
    this.#unfit = 0;
    this.#failure = undefined;
    this.#failedAtMs = -Infinity;
    this.#notBeforeMs = this.#parts.clock.monotonicMs() + loadDelayMs;
  }

  /** Call when an idle sandbox of this start mode ended before its call. */
  lost(startMode: IdleStartMode): void {
    this.#failed(startMode, new SandboxError("an idle sandbox ended, or its template"));
  }

  /** One attempt by the present start mode, and its consequences. */
  async #attempt(
    signal: AbortSignal | undefined,
    make: (signal: AbortSignal) => Promise<IdleSandbox | undefined>,
  ): Promise<IdleSandbox | undefined> {
    const { startMode } = this;
    if (startMode === undefined) return undefined;
    const generation = this.#generation.signal;
    const either = signal === undefined ? generation : AbortSignal.any([signal, generation]);
    try {
      const idle = await make(either);
      if (either.aborted) {
        if (idle !== undefined) this.#parts.disposal.begin(idle);
      } else {
        if (idle === undefined) this.#stepDown(startMode, undefined);
        this.#failure = undefined;
        return idle;
      }
    } catch (error) {
      if (!either.aborted) this.#failed(startMode, error);
    }
    signal?.throwIfAborted();
    return undefined;
  }

  async #openTemplate(signal: AbortSignal): Promise<PooledTemplate | undefined> {
    const template = await openTemplate(this.#parts, this.#pooled, signal);
    if (template === undefined) return undefined;
    if (signal.aborted) this.#parts.disposal.begin(template);
    signal.throwIfAborted();
    this.#template = template;
    void template.template.lost.then(() => {
      if (this.#template === template) this.lost("template");
    });
    return template;
  }

  #forkFrom(template: PooledTemplate, signal: AbortSignal): Promise<IdleSandbox> {
    const { clock } = this.#parts;
    return withTimeout(forkTimeoutMs, clock, signal, (bounded) => fork(template, bounded));
  }

  #failed(startMode: IdleStartMode, error: unknown): void {
    if (error instanceof SandboxError && error.isUnfit) return this.#stepDown(startMode, error);
    // A template that cannot make a sandbox is of no use.
    if (startMode === "template") this.dropTemplate();
    const nowMs = this.#parts.clock.monotonicMs();
    // Several attempts may fail for the same reason.
    if (nowMs < this.#notBeforeMs) return;
    const isCalm = nowMs - this.#failedAtMs > calmMs;
    this.#retryMs = isCalm ? retry.firstMs : Math.min(2 * this.#retryMs, retry.lastMs);
    this.#failedAtMs = nowMs;
    this.#notBeforeMs = nowMs + this.#retryMs;
    this.#failure = { attempts: (this.#failure?.attempts ?? 0) + 1, error };
    const facts = { startMode, retryMs: this.#retryMs };
    logEvent(this.#log, "warm_start.failed", { ...facts, err: error });
    this.#onChanged();
  }

  /** Several attempts may find the same. */
  #stepDown(startMode: IdleStartMode, error: SandboxError | undefined): void {
    if (this.startMode !== startMode) return;
    this.#unfit++;
    this.#failure = undefined;
    this.dropTemplate();
    const facts = { startMode, next: this.startMode ?? "cold" };
    if (error === undefined) logEvent(this.#log, "warm_start.unknown", facts);
    else logEvent(this.#log, "warm_start.unfit", { ...facts, err: error });
    this.#onChanged();
  }
}
