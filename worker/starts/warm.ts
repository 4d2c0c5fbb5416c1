/**
 * Gives calls sandboxes that waited for them, and makes those that will be needed next.
 */
import type { ToolEntry } from "../manifest/manifest.ts";
import type { Profile } from "../sandbox/profile.ts";
import { NotGrantedError } from "../sandbox/host-access.ts";
import { logEvent } from "../telemetry/log-event.ts";
import type { CodeVersions } from "./code/code-versions.ts";
import { CodeNotice } from "./code/code-notice.ts";
import { ColdStarts } from "./cold.ts";
import { Endings } from "./endings.ts";
import { hostState } from "./code/host-state.ts";
import { entryKey, profileKey } from "./keys.ts";
import { Refills } from "./refills.ts";
import { Shelf } from "./shelf.ts";
import type { ShelfStats, Starts, ToolSandbox } from "./starts.ts";
import type { SupplyParts } from "./supply.ts";
import type { Waiting } from "./waiting.ts";
import { waysOf } from "./ways.ts";

/**
 * Milliseconds until the next sandbox is made in any case: a call may have artifacts brought to it
 * before its tool begins.
 */
const stagingMs = 50;

/** What warm starts are made with. */
export interface WarmOptions extends Omit<SupplyParts, "endings" | "versions"> {
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
  readonly #parts: SupplyParts;
  readonly #endings: Endings;
  readonly #refills: Refills;
  readonly #notice: CodeNotice;
  readonly #listening: Disposable;
  /** By the key of each tool that is served, and by that of a profile. */
  readonly #shelves = new Map<string, Map<string, Shelf>>();

  constructor(options: WarmOptions) {
    this.#options = options;
    this.#cold = new ColdStarts(options);
    this.#endings = new Endings(options.log);
    this.#parts = { ...options, endings: this.#endings };
    this.#refills = new Refills({ ...options, shelves: () => this.#all() });
    this.#notice = new CodeNotice(options);
    this.#listening = options.versions.onChange((runtime) => {
      for (const shelf of this.#all())
        if (shelf.entry.runtime === runtime) this.#retire(shelf, "tool code changed");
      this.#notice.changed(runtime);
      this.#refills.stir();
    });
  }

  get stats(): readonly ShelfStats[] {
    return [...this.#all()].map(({ stats }) => stats);
  }

  async acquire(entry: ToolEntry, profile: Profile, signal: AbortSignal): Promise<ToolSandbox> {
    signal.throwIfAborted();
    await using held = new AsyncDisposableStack();
    held.use(this.#refills.run());
    const unstarted = held.use(this.#notice.begin(entry.runtime));
    const waiting = held.use(await this.#take(entry, profile, signal));
    const made =
      waiting === undefined
        ? held.use(await this.#cold.acquire(entry, profile, signal))
        : woken(waiting);
    this.#refills.stirWithin(stagingMs);
    const owned = held.move();
    return {
      kind: made.kind,
      sandbox: made.sandbox,
      tool: made.tool,
      start: async () => {
        using _ = unstarted;
        const execution = await made.start();
        // Not before: until its tool has begun, a call has no time to lose.
        this.#refills.stir();
        return execution;
      },
      [Symbol.asyncDispose]: () => owned.disposeAsync(),
    };
  }

  follow(tools: Iterable<ToolEntry>): void {
    const served = new Map([...tools].map((entry) => [entryKey(entry), entry]));
    for (const [key, shelves] of this.#shelves) {
      const entry = served.get(key);
      for (const shelf of shelves.values()) {
        if (entry === undefined) this.#retire(shelf, "tool changed or is not served any more");
        else this.#followWith(shelf, entry);
      }
      if (entry === undefined) this.#shelves.delete(key);
    }
    for (const [key, entry] of served) {
      if (!this.#shelves.has(key)) this.#shelves.set(key, new Map());
      if (entry.warm.min > 0) this.#shelfOf(entry, this.#options.profileOf(entry));
    }
    this.#refills.stir();
  }

  drain(): void {
    this.#refills.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#listening[Symbol.dispose]();
    this.#notice[Symbol.dispose]();
    for (const shelf of this.#all()) shelf.retire(new Error("the worker is shutting down"));
    await this.#refills[Symbol.asyncDispose]();
    await this.#endings.settled();
    await this.#options.versions[Symbol.asyncDispose]();
  }

  /** What was kept ready for the profile that the tool had is of no more use. */
  #followWith(shelf: Shelf, entry: ToolEntry): void {
    const isUsual = this.#isUsual(shelf, entry);
    if (shelf.isUsual && !isUsual) this.#retire(shelf, "tool has another profile");
    shelf.follow(entry, isUsual);
  }

  #isUsual({ profile }: Pick<Shelf, "profile">, entry: ToolEntry): boolean {
    return profileKey(profile) === profileKey(this.#options.profileOf(entry));
  }

  #retire(shelf: Shelf, reason: string): void {
    const { tool, profile, waiting: count } = shelf.stats;
    if (!shelf.isEmpty)
      logEvent(this.#options.log, "sandbox.retired", { tool, profile, count, reason });
    shelf.retire(new Error(reason));
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
    const shelf = this.#shelfOf(entry, profile);
    if (shelf === undefined) return undefined;
    shelf.arrive();
    try {
      const host = await hostState(this.#options.hostAccess, entry);
      return await shelf.take(host, signal);
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
  #shelfOf(entry: ToolEntry, profile: Profile): Shelf | undefined {
    const shelves = this.#shelves.get(entryKey(entry));
    if (shelves === undefined || waysOf(entry, profile).length === 0) return undefined;
    const key = profileKey(profile);
    const known = shelves.get(key);
    if (known !== undefined) return known;
    const shelf = new Shelf(this.#parts, entry, profile, () => this.#refills.stir());
    shelf.follow(entry, this.#isUsual(shelf, entry));
    shelves.set(key, shelf);
    return shelf;
  }

  *#all(): Iterable<Shelf> {
    for (const shelves of this.#shelves.values()) yield* shelves.values();
  }
}

/** A sandbox that waited, as one that was made for the call; it stays its owner's. */
function woken(waiting: Waiting): Omit<ToolSandbox, typeof Symbol.asyncDispose> {
  const { kind, parked, tool } = waiting;
  return { kind, sandbox: parked, tool, start: () => parked.wake() };
}
