/**
 * Where the waiting sandboxes of one tool come from: the best way that works with its present code,
 * and what to do when it does not.
 */
import type { IdleStartMode } from "../sandbox/profile.ts";
import { SandboxError } from "../sandbox/sandbox.ts";
import { backoffDelays } from "../support/backoff.ts";
import type { Clock } from "../support/clock.ts";
import { logEvent } from "../telemetry/log-event.ts";
import type { Logger } from "../telemetry/logger.ts";
import type { Disposal } from "./disposal.ts";
import { limited } from "./limited.ts";
import { type AheadParts, type Owner, openTemplate, parkPooled } from "./making.ts";
import type { SharedTemplate } from "./shared-template.ts";
import type { WarmFailure } from "./starts.ts";
import { type Origin, type Waiting, isSame } from "./idle-sandbox.ts";
import { startModesOf } from "./start-modes.ts";

/**
 * Milliseconds in which a tool has to be loaded: one that hangs in its import holds up the refills
 * of others.
 */
export const readyTimeoutMs = 75_000;
/**
 * Milliseconds after which a call does not wait for its template any more, but starts cold: many
 * times what that takes.
 */
export const missTimeoutMs = 1_000;
/** Bounds of the pauses after failures, in milliseconds. */
export const retry = { baseMs: 500, capMs: 60_000 } as const;
/** Milliseconds without a failure after which pauses are short again. */
export const calmMs = 2 * retry.capMs;
/**
 * Milliseconds after a change of the code before it is loaded: changes seldom come alone. Twice as
 * many after each that comes when the one before has hardly been loaded, up to the last, so that
 * who writes all the time does not have it loaded all the time.
 */
export const settle = { firstMs: 200, lastMs: 1_600 } as const;
/** Lengths of the last such pause after which a change counts as alone. */
const aloneAfterPauses = 5;

/** What factories share. */
export interface FactoryParts extends AheadParts {
  readonly clock: Clock;
  /** From 0 inclusive to 1 exclusive. */
  readonly random: () => number;
  readonly log: Logger;
  readonly disposal: Disposal;
}

/** Makes the sandboxes of one tool. Its owner retires it when it is not needed any more. */
export class SandboxFactory {
  readonly #parts: FactoryParts;
  readonly #owner: Owner;
  readonly #startModes: readonly IdleStartMode[];
  readonly #log: Logger;
  readonly #onChanged: () => void;
  /** How many of the ways turned out unfit. */
  #unfit = 0;
  #template: SharedTemplate | undefined;
  /** Ends what is being made when nobody may use it any more. */
  #generation = new AbortController();
  #delays: Generator<number, never, void>;
  #failedAtMs = -Infinity;
  #failure: WarmFailure | undefined;
  #notBeforeMs = -Infinity;
  #retiredAtMs = -Infinity;
  #settleMs: number = settle.firstMs;
  /** Whether anything was made of the present code, or was to be. */
  #hasStarted = false;

  /**
   * @param onChanged told when a sandbox may be made at another time than before; it must not throw
   */
  constructor(parts: FactoryParts, owner: Owner, onChanged: () => void) {
    this.#parts = parts;
    this.#owner = owner;
    this.#startModes = startModesOf(owner.entry, owner.profile);
    this.#log = parts.log.child({ tool: owner.entry.name, profile: owner.profile.name });
    this.#onChanged = onChanged;
    this.#delays = this.#newDelays();
  }

  /** How sandboxes are made now; undefined when they cannot be before their calls. */
  get startMode(): IdleStartMode | undefined {
    return this.#startModes[this.#unfit];
  }

  /** Bytes of memory that the template takes; 0 where there is none. */
  get templateBytes(): number {
    return this.#template?.privateBytes ?? 0;
  }

  /** Undefined when the last attempt succeeded. */
  get failure(): WarmFailure | undefined {
    return this.#failure;
  }

  get hasTemplate(): boolean {
    return this.#template !== undefined;
  }

  /** When the next sandbox may be made, on the monotonic clock. */
  get notBeforeMs(): number {
    return this.#notBeforeMs;
  }

  /** How many may be made at once: a template is started by the first. */
  get maxAtOnce(): number {
    return this.startMode === "template" && !this.hasTemplate ? 1 : Infinity;
  }

  /**
   * Makes a sandbox; the caller owns it. Total: what goes wrong is logged, and decides when and how
   * it is tried again.
   */
  async make(): Promise<Waiting | undefined> {
    const { clock } = this.#parts;
    this.#hasStarted = true;
    return this.#attempt(readyTimeoutMs, undefined, async (signal) => {
      if (this.startMode === undefined) return undefined;
      if (this.startMode === "pool") return parkPooled(this.#parts, this.#owner, signal);
      const template = this.#template ?? (await this.#openTemplate(signal));
      return template && limited(clock, missTimeoutMs, signal, (bounded) => template.park(bounded));
    });
  }

  /**
   * Makes a sandbox for a call that waits for it, where there is a template for that; the caller
   * owns it. Throws the signal's reason only.
   */
  async makeNow(present: Origin, signal: AbortSignal): Promise<Waiting | undefined> {
    const template = this.#template;
    if (template === undefined) return undefined;
    if (!isSame(template.origin, present)) {
      this.giveBack();
      return undefined;
    }
    return this.#attempt(missTimeoutMs, signal, (bounded) => template.park(bounded));
  }

  /** Ends the template until a sandbox is made again. */
  giveBack(): void {
    const template = this.#template;
    this.#template = undefined;
    if (template !== undefined)
      this.#parts.disposal.end({ [Symbol.asyncDispose]: () => template.retire() });
  }

  /** Ends the template and what is being made, and forgets what is known of the code. */
  retire(reason: Error): void {
    this.giveBack();
    this.#generation.abort(reason);
    this.#generation = new AbortController();
    this.#unfit = 0;
    this.#failure = undefined;
    this.#delays = this.#newDelays();
    this.#failedAtMs = -Infinity;
    const nowMs = this.#parts.clock.monotonicMs();
    if (nowMs - this.#retiredAtMs > aloneAfterPauses * this.#settleMs) {
      this.#settleMs = settle.firstMs;
    } else if (this.#hasStarted) {
      this.#settleMs = Math.min(2 * this.#settleMs, settle.lastMs);
    }
    this.#hasStarted = false;
    this.#retiredAtMs = nowMs;
    this.#notBeforeMs = nowMs + this.#settleMs;
  }

  /** To be told of a sandbox that ended before its call came. */
  lost(kind: IdleStartMode): void {
    if (kind === "template" && this.#template?.isLost === true) this.#onTemplateLost();
    else this.#pause(kind, new SandboxError("a sandbox ended while it waited for its call"));
  }

  /** One attempt by the present way, and what follows from it. */
  async #attempt(
    limitMs: number,
    signal: AbortSignal | undefined,
    make: (signal: AbortSignal) => Promise<Waiting | undefined>,
  ): Promise<Waiting | undefined> {
    const { clock, disposal } = this.#parts;
    const { startMode } = this;
    const generation = this.#generation.signal;
    const whole = signal === undefined ? generation : AbortSignal.any([signal, generation]);
    try {
      const waiting = await limited(clock, limitMs, whole, make);
      if (waiting !== undefined) this.#failure = undefined;
      if (waiting === undefined && startMode !== undefined) this.#stepDown(startMode, undefined);
      if (!whole.aborted) return waiting;
      if (waiting !== undefined) disposal.end(waiting);
    } catch (error) {
      if (!whole.aborted && startMode !== undefined) this.#failed(startMode, error);
    }
    signal?.throwIfAborted();
    return undefined;
  }

  async #openTemplate(signal: AbortSignal): Promise<SharedTemplate | undefined> {
    const template = await openTemplate(this.#parts, this.#owner, signal);
    if (template === undefined) return undefined;
    if (signal.aborted) {
      await template.retire();
      signal.throwIfAborted();
    }
    this.#template = template;
    void template.lost.then(() => {
      if (this.#template === template) this.#onTemplateLost();
    });
    return template;
  }

  #onTemplateLost(): void {
    this.giveBack();
    this.#pause("template", new SandboxError("the template ended"));
  }

  #failed(startMode: IdleStartMode, error: unknown): void {
    if (error instanceof SandboxError && error.isUnfit) {
      this.#stepDown(startMode, error);
    } else {
      // A template that cannot make a sandbox is as good as none.
      if (startMode === "template") this.giveBack();
      this.#pause(startMode, error);
    }
  }

  /** Several attempts may come to the same end. */
  #stepDown(startMode: IdleStartMode, error: SandboxError | undefined): void {
    if (this.startMode !== startMode) return;
    this.#unfit++;
    this.#failure = undefined;
    this.giveBack();
    const facts = { startMode, next: this.startMode ?? "cold" };
    // What the language cannot do at all is no news to anybody.
    if (error === undefined) logEvent(this.#log, "warm_start.unknown", facts);
    else logEvent(this.#log, "warm_start.unfit", { ...facts, err: error });
    this.#onChanged();
  }

  /** Several attempts may fail for the same reason. */
  #pause(startMode: IdleStartMode, error: unknown): void {
    const nowMs = this.#parts.clock.monotonicMs();
    if (nowMs < this.#notBeforeMs) return;
    if (nowMs - this.#failedAtMs > calmMs) this.#delays = this.#newDelays();
    this.#failedAtMs = nowMs;
    this.#failure = { attempts: (this.#failure?.attempts ?? 0) + 1, error };
    this.#notBeforeMs = nowMs + this.#delays.next().value;
    const retryMs = Math.round(this.#notBeforeMs - nowMs);
    logEvent(this.#log, "warm_start.failed", { startMode, retryMs, err: error });
    this.#onChanged();
  }

  #newDelays(): Generator<number, never, void> {
    return backoffDelays({ ...retry, random: this.#parts.random });
  }
}
