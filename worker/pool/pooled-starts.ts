/**
 * Starts calls in idle sandboxes, and cold where there is none.
 *
 * A ToolPool holds the idle sandboxes of one tool and profile, a SandboxFactory makes them. The
 * PoolScheduler sets each pool's target: its recent burst of calls, up to `warm.max`, within the
 * memory budget of all. It refills pools after running calls. A change of the code, of the entry or
 * of the tool's packages retires a pool's sandboxes.
 */
import type { Runtime, ToolEntry } from "../manifest/manifest.ts";
import { entriesOf } from "../manifest/programs.ts";
import type { Profile } from "../sandbox/profile.ts";
import type { Execution } from "../sandbox/sandbox.ts";
import { CodeNotice } from "./code/code-notice.ts";
import type { CodeVersions } from "./code/code-watch.ts";
import { hostFingerprint } from "./code/host-fingerprint.ts";
import type { CallSeries } from "./call-series.ts";
import { acquireCold } from "./cold-starts.ts";
import { Disposal } from "./disposal.ts";
import type { IdleSandbox } from "./idle-sandbox.ts";
import { entryKey, profileKey } from "./keys.ts";
import { PoolScheduler } from "./pool-scheduler.ts";
import type { FactoryParts } from "./sandbox-factory.ts";
import { startModesOf } from "./start-modes.ts";
import type { PoolStats, Starts, ToolSandbox } from "./starts.ts";
import { ToolPool } from "./tool-pool.ts";

/** What pooled starts are made with. */
export interface PooledOptions extends Omit<FactoryParts, "disposal" | "versions"> {
  readonly versions: CodeVersions;
  /** Bytes of memory for all idle sandboxes and templates. */
  readonly maxBytes: number;
  /** Processors that calls and refills share. */
  readonly cpus: number;
  /** Calls that wait for calls of their own. */
  readonly suspendedCalls: () => number;
  /** Calls by tools, which refills and disposals leave the processors to. */
  readonly series: CallSeries;
  /** The profile of calls whose request names none. */
  readonly profileOf: (entry: ToolEntry) => Profile;
}

/** Keeps a pool for each tool and profile. */
export class PooledStarts implements Starts {
  readonly #options: PooledOptions;
  readonly #parts: FactoryParts;
  readonly #disposal: Disposal;
  readonly #scheduler: PoolScheduler;
  readonly #notice: CodeNotice;
  readonly #listening: Disposable;
  /** By {@link entryKey}. */
  #served: ReadonlyMap<string, ToolEntry> = new Map();
  /** By the keys of entry and profile. */
  readonly #pools = new Map<string, ToolPool>();

  constructor(options: PooledOptions) {
    this.#options = options;
    this.#disposal = new Disposal(options);
    this.#parts = { ...options, disposal: this.#disposal };
    this.#scheduler = new PoolScheduler({ ...options, pools: () => this.#pools.values() });
    this.#notice = new CodeNotice(options);
    this.#listening = options.versions.onChange((runtime) => this.#onCodeChanged(runtime));
  }

  get stats(): readonly PoolStats[] {
    return [...this.#pools.values()].map(({ stats }) => stats);
  }

  async acquire(entry: ToolEntry, profile: Profile, signal: AbortSignal): Promise<ToolSandbox> {
    signal.throwIfAborted();
    await using held = new AsyncDisposableStack();
    const call = held.use(this.#scheduler.beginCall());
    const unstarted = held.use(this.#notice.begin(entry.runtime));
    const idle = held.use(await this.#take(entry, profile, signal));
    const made =
      idle === undefined
        ? held.use(await acquireCold(this.#options, entry, profile, signal))
        : { ...idle, sandbox: idle.parked, start: wakeOf(idle) };
    const owned = held.move();
    return {
      startMode: made.startMode,
      sandbox: made.sandbox,
      tool: made.tool,
      start: async (args, whileStarting) => {
        using _ = unstarted;
        const execution = await made.start(args, whileStarting);
        void endWith(call, execution);
        this.#scheduler.scheduleSoon();
        return execution;
      },
      [Symbol.asyncDispose]: () => owned.disposeAsync(),
    };
  }

  follow(tools: Iterable<ToolEntry>): void {
    const entries = [...tools].flatMap(entriesOf);
    this.#served = new Map(entries.map((entry) => [entryKey(entry), entry]));
    for (const [key, pool] of this.#pools) {
      const { profile } = pool.pooled;
      const entry = this.#served.get(entryKey(pool.pooled.entry));
      if (entry === undefined) {
        pool.retire("tool changed or is not served any more");
        this.#pools.delete(key);
      } else if (this.#isOutdated(pool)) {
        pool.retire("packages of the tool changed");
        this.#pools.delete(key);
      } else {
        pool.limit(this.#boundsOf(entry, profile));
      }
    }
    for (const entry of this.#served.values())
      if (entry.warm.min > 0) this.#poolOf(entry, this.#options.profileOf(entry));
    this.#scheduler.schedule();
  }

  disposeLater(resources: AsyncDisposable): void {
    this.#disposal.beginAfterSeries(resources);
  }

  drain(): void {
    this.#scheduler.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#listening[Symbol.dispose]();
    this.#notice[Symbol.dispose]();
    for (const pool of this.#pools.values()) pool.end("the worker is shutting down");
    await this.#scheduler[Symbol.asyncDispose]();
    await this.#disposal.settled();
  }

  #onCodeChanged(runtime: Runtime): void {
    for (const pool of this.#pools.values())
      if (pool.pooled.entry.runtime === runtime) pool.retire("tool code changed");
    this.#notice.changed(runtime);
    this.#scheduler.schedule();
  }

  /** Throws NotGrantedError; the signal's reason. */
  async #take(
    entry: ToolEntry,
    profile: Profile,
    signal: AbortSignal,
  ): Promise<IdleSandbox | undefined> {
    const pool = this.#poolOf(entry, profile);
    if (pool === undefined) return undefined;
    pool.arrive();
    return pool.take(await hostFingerprint(this.#options.hostAccess, entry), signal);
  }

  /** Undefined for an entry that is not served any more, or whose calls always start cold. */
  #poolOf(entry: ToolEntry, profile: Profile): ToolPool | undefined {
    const isServed = this.#served.has(entryKey(entry));
    if (!isServed || startModesOf(entry, profile).length === 0) return undefined;
    const key = entryKey(entry) + profileKey(profile);
    const known = this.#pools.get(key);
    if (known !== undefined && !this.#isOutdated(known)) return known;
    known?.retire("packages of the tool changed");
    const pooled = { entry, profile, installation: this.#installationOf(entry) };
    const pool = new ToolPool(this.#parts, pooled, () => this.#scheduler.schedule());
    pool.limit(this.#boundsOf(entry, profile));
    this.#pools.set(key, pool);
    return pool;
  }

  /** Whether the tool has other packages now. */
  #isOutdated({ pooled: { entry, installation } }: ToolPool): boolean {
    return installation !== this.#installationOf(entry);
  }

  #installationOf(entry: ToolEntry): string | undefined {
    return this.#options.runners.get(entry.runtime)?.installationKeyOf?.(entry);
  }

  /** An operator's `min` is for the profile of requests that name none. */
  #boundsOf(entry: ToolEntry, profile: Profile): ToolEntry["warm"] {
    const isUsual = profileKey(profile) === profileKey(this.#options.profileOf(entry));
    return isUsual ? entry.warm : { ...entry.warm, min: 0 };
  }
}

/** A sandbox that is gone needs no processor, also where its disposal waits. */
async function endWith(call: Disposable, { exited }: Execution): Promise<void> {
  const { ending } = await exited.catch(() => ({ ending: undefined }));
  if (ending === undefined) return;
  await ending;
  call[Symbol.dispose]();
}

function wakeOf({ parked }: IdleSandbox): ToolSandbox["start"] {
  return (args, signal) => parked.wake(args, signal);
}
