/**
 * Gives calls sandboxes that waited for them, and makes those that will be needed next.
 */
import type { ToolEntry } from "../manifest/manifest.ts";
import type { Profile } from "../sandbox/profile.ts";
import { NotGrantedError } from "../sandbox/host-access.ts";
import { logEvent } from "../telemetry/log-event.ts";
import type { CodeVersions } from "./code/code-versions.ts";
import { CodeNotice } from "./code/code-notice.ts";
import { ColdStarts } from "./cold-starts.ts";
import { Disposal } from "./disposal.ts";
import { hostState } from "./code/host-state.ts";
import { entryKey, profileKey } from "./keys.ts";
import { PoolScheduler } from "./pool-scheduler.ts";
import { ToolPool } from "./tool-pool.ts";
import type { PoolStats, Starts, ToolSandbox } from "./starts.ts";
import type { FactoryParts } from "./sandbox-factory.ts";
import type { Waiting } from "./idle-sandbox.ts";
import { startModesOf } from "./start-modes.ts";

/**
 * Milliseconds until the next sandbox is made in any case: a call may have artifacts brought to it
 * before its tool begins.
 */
const stagingMs = 50;

/** What warm starts are made with. */
export interface WarmOptions extends Omit<FactoryParts, "disposal" | "versions"> {
  /** Disposed with the starts. */
  readonly versions: CodeVersions;
  /** Bytes of memory for all sandboxes that wait, with templates. */
  readonly maxBytes: number;
  /** Processors that calls and refills share. */
  readonly cpus: number;
  /** The profile of calls that no request tightens. */
  readonly profileOf: (entry: ToolEntry) => Profile;
}

/**
 * Has sandboxes wait for calls, by tool and profile. A call for which none waits gets one as fast
 * as it can be had.
 */
export class WarmStarts implements Starts {
  readonly #options: WarmOptions;
  readonly #cold: ColdStarts;
  readonly #parts: FactoryParts;
  readonly #disposal: Disposal;
  readonly #scheduler: PoolScheduler;
  readonly #notice: CodeNotice;
  readonly #listening: Disposable;
  /** By the key of each tool that is served, and by that of a profile. */
  readonly #pools = new Map<string, Map<string, ToolPool>>();

  constructor(options: WarmOptions) {
    this.#options = options;
    this.#cold = new ColdStarts(options);
    this.#disposal = new Disposal(options.log);
    this.#parts = { ...options, disposal: this.#disposal };
    this.#scheduler = new PoolScheduler({ ...options, pools: () => this.#all() });
    this.#notice = new CodeNotice(options);
    this.#listening = options.versions.onChange((runtime) => {
      for (const pool of this.#all())
        if (pool.entry.runtime === runtime) this.#retire(pool, "tool code changed");
      this.#notice.changed(runtime);
      this.#scheduler.stir();
    });
  }

  get stats(): readonly PoolStats[] {
    return [...this.#all()].map(({ stats }) => stats);
  }

  async acquire(entry: ToolEntry, profile: Profile, signal: AbortSignal): Promise<ToolSandbox> {
    signal.throwIfAborted();
    await using held = new AsyncDisposableStack();
    held.use(this.#scheduler.run());
    const unstarted = held.use(this.#notice.begin(entry.runtime));
    const waiting = held.use(await this.#take(entry, profile, signal));
    const made =
      waiting === undefined
        ? held.use(await this.#cold.acquire(entry, profile, signal))
        : woken(waiting);
    this.#scheduler.stirWithin(stagingMs);
    const owned = held.move();
    return {
      kind: made.kind,
      sandbox: made.sandbox,
      tool: made.tool,
      start: async () => {
        using _ = unstarted;
        const execution = await made.start();
        // Not before: until its tool has started, a call has no time to lose.
        this.#scheduler.stir();
        return execution;
      },
      [Symbol.asyncDispose]: () => owned.disposeAsync(),
    };
  }

  follow(tools: Iterable<ToolEntry>): void {
    const served = new Map([...tools].map((entry) => [entryKey(entry), entry]));
    for (const [key, pools] of this.#pools) {
      const entry = served.get(key);
      for (const pool of pools.values()) {
        if (entry === undefined) this.#retire(pool, "tool changed or is not served any more");
        else this.#followWith(pool, entry);
      }
      if (entry === undefined) this.#pools.delete(key);
    }
    for (const [key, entry] of served) {
      if (!this.#pools.has(key)) this.#pools.set(key, new Map());
      if (entry.warm.min > 0) this.#poolOf(entry, this.#options.profileOf(entry));
    }
    this.#scheduler.stir();
  }

  drain(): void {
    this.#scheduler.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#listening[Symbol.dispose]();
    this.#notice[Symbol.dispose]();
    for (const pool of this.#all()) pool.retire(new Error("the worker is shutting down"));
    await this.#scheduler[Symbol.asyncDispose]();
    await this.#disposal.settled();
    await this.#options.versions[Symbol.asyncDispose]();
  }

  /** What was kept ready for the profile that the tool had is of no more use. */
  #followWith(pool: ToolPool, entry: ToolEntry): void {
    const isUsual = this.#isUsual(pool, entry);
    if (pool.isUsual && !isUsual) this.#retire(pool, "tool has another profile");
    pool.follow(entry, isUsual);
  }

  #isUsual({ profile }: Pick<ToolPool, "profile">, entry: ToolEntry): boolean {
    return profileKey(profile) === profileKey(this.#options.profileOf(entry));
  }

  #retire(pool: ToolPool, reason: string): void {
    const { tool, profile, waiting: count } = pool.stats;
    if (!pool.isEmpty)
      logEvent(this.#options.log, "sandbox.retired", { tool, profile, count, reason });
    pool.retire(new Error(reason));
  }

  /**
   * What waits for such a call, or a new one from a template. Throws NotGrantedError; the signal's
   * reason.
   */
  async #take(
    entry: ToolEntry,
    profile: Profile,
    signal: AbortSignal,
  ): Promise<Waiting | undefined> {
    const pool = this.#poolOf(entry, profile);
    if (pool === undefined) return undefined;
    pool.arrive();
    try {
      const host = await hostState(this.#options.hostAccess, entry);
      return await pool.take(host, signal);
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof NotGrantedError) throw error;
      logEvent(this.#options.log, "warm_start.failed", { tool: entry.name, err: error });
      return undefined;
    }
  }

  /**
   * Undefined for an entry that is not served any more, and for one whose calls start cold in any
   * case.
   */
  #poolOf(entry: ToolEntry, profile: Profile): ToolPool | undefined {
    const pools = this.#pools.get(entryKey(entry));
    if (pools === undefined || startModesOf(entry, profile).length === 0) return undefined;
    const key = profileKey(profile);
    const known = pools.get(key);
    if (known !== undefined) return known;
    const pool = new ToolPool(this.#parts, entry, profile, () => this.#scheduler.stir());
    pool.follow(entry, this.#isUsual(pool, entry));
    pools.set(key, pool);
    return pool;
  }

  *#all(): Iterable<ToolPool> {
    for (const pools of this.#pools.values()) yield* pools.values();
  }
}

/** A sandbox that waited, as one that was made for the call; it stays its owner's. */
function woken(waiting: Waiting): Omit<ToolSandbox, typeof Symbol.asyncDispose> {
  const { kind, parked, tool } = waiting;
  return { kind, sandbox: parked, tool, start: () => parked.wake() };
}
