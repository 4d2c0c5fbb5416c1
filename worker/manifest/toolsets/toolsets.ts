/**
 * The toolsets of a directory: each is a directory or a ZIP file with a manifest of its own. They
 * are polled as the manifest is, and one that cannot be used leaves the others, and its last good
 * state, as they are.
 */
import { ChangeHints } from "../../support/change-hints.ts";
import type { Clock } from "../../support/clock.ts";
import type { NewId } from "../../support/ids.ts";
import { type EventLog, logEvent } from "../../telemetry/log-event.ts";
import { pollMs, settleMs } from "../watch.ts";
import { ToolsetError } from "./budget.ts";
import { type FoundToolset, findToolsets, problemOf, stateOf } from "./find.ts";
import { type PartOptions, type ToolsetPart, readPart } from "./part.ts";
import {
  type Snapshot,
  type ToolsetLease,
  type ToolsetRevision,
  type ToolsetSource,
  Snapshots,
} from "./snapshots.ts";

/** Least pause after a poll, in lengths of that poll: it takes 5 % of a core. */
const pausePerPoll = 19;

/** The state of a toolset that could not be copied: the next poll tries again. */
const unknownState = Symbol("unknown");

/** What toolsets are opened with. */
export interface ToolsetsOptions extends PartOptions {
  /** `TOOLSETS_DIR`. */
  readonly directory: string;
  /** Directory for the copies, which its owner removes; sandboxes can pass it. */
  readonly base: string;
  readonly newId: NewId;
  readonly log: EventLog<"info" | "warn" | "error">;
  readonly clock: Clock;
  /** {@link pollMs} and {@link settleMs} unless a test sets them. */
  readonly intervals?: { readonly pollMs?: number; readonly settleMs?: number };
  /** Whether file events shorten pauses. Default: true. */
  readonly hints?: boolean;
}

/** What the last poll found of a toolset. */
type Found = FoundToolset | typeof isGone;

const isGone = { state: undefined, source: undefined, problem: undefined } as const;

/** A toolset that was found before. */
interface Known {
  /** The state that is in force, or was refused. */
  readonly state: string | undefined | typeof unknownState;
  /** A state that has to be found once more. */
  candidate: { readonly state: string | undefined } | undefined;
  readonly part: ToolsetPart | undefined;
  readonly problem: string | undefined;
}

/** The toolsets in force. */
export class Toolsets {
  readonly #options: ToolsetsOptions;
  readonly #snapshots: Snapshots;
  readonly #known = new Map<string, Known>();
  #watched: readonly string[] = [];
  /** Of the directory of toolsets itself. */
  #problem: string | undefined;

  private constructor(options: ToolsetsOptions) {
    const { base, newId, log } = options;
    this.#options = options;
    this.#snapshots = new Snapshots(base, newId, (error) =>
      logEvent(log, "toolset.remove_failed", { err: error }),
    );
  }

  /** Loads the toolsets that can be used. Rejects with the signal's reason. */
  static async open(options: ToolsetsOptions, signal: AbortSignal): Promise<Toolsets> {
    const toolsets = new Toolsets(options);
    for (const [name, found] of await toolsets.#find(signal)) {
      await toolsets.#load(name, found, signal);
    }
    return toolsets;
  }

  /** Those in force, by name. */
  get parts(): readonly ToolsetPart[] {
    return [...this.#known.keys()].sort().flatMap((name) => this.#known.get(name)?.part ?? []);
  }

  /** Why others cannot be used, one line each. */
  get problems(): readonly string[] {
    const of = Array.from(this.#known, ([name, { problem }]) =>
      problem === undefined ? [] : [`toolset "${name}" ${problem}`],
    );
    return [...(this.#problem === undefined ? [] : [this.#problem]), ...of.flat()];
  }

  /** The code of a state; undefined where there is none any more. The caller owns the lease. */
  lease(of: ToolsetRevision): ToolsetLease | undefined {
    return this.#snapshots.lease(of);
  }

  /**
   * Removes former states, but these and those that a lease holds. To be called with the states
   * that are served: until then calls may begin with a state that is no longer in `parts`.
   */
  async retain(served: Iterable<ToolsetRevision>): Promise<void> {
    await this.#snapshots.retain([...this.parts, ...served]);
  }

  /**
   * Polls until the signal aborts, and calls `onChange` when the parts have changed. Rejects with
   * the signal's reason, and what `onChange` throws.
   */
  async follow(onChange: () => Promise<void>, signal: AbortSignal): Promise<void> {
    const { clock, log, hints: hasHints = true, intervals } = this.#options;
    using hints = new ChangeHints((error) =>
      logEvent(log, "manifest.file_events_lost", { err: error }),
    );
    const leastMs = intervals?.settleMs ?? settleMs;
    let isSettled = true;
    let tookMs = 0;
    for (;;) {
      if (hasHints) hints.follow(this.#watched.map((path) => ({ path })));
      const quietMs = Math.max(intervals?.pollMs ?? pollMs, pausePerPoll * tookMs);
      await hints.pause({ leastMs, mostMs: isSettled ? quietMs : leastMs }, clock, signal);
      const beganMs = clock.monotonicMs();
      const found = await this.#find(signal);
      tookMs = clock.monotonicMs() - beganMs;
      isSettled = true;
      let hasChanged = false;
      for (const [name, each] of found) {
        const known = this.#known.get(name);
        if (known !== undefined && known.state === each.state) {
          known.candidate = undefined;
        } else if (known?.candidate !== undefined && known.candidate.state === each.state) {
          hasChanged = (await this.#load(name, each, signal)) || hasChanged;
          // Copies that fail count as a part of the poll: they may be large.
          if (this.#known.get(name)?.state === unknownState) tookMs = clock.monotonicMs() - beganMs;
        } else {
          isSettled = false;
          const { state, part, problem } = known ?? {};
          this.#known.set(name, { state, part, problem, candidate: { state: each.state } });
        }
      }
      if (hasChanged) await onChange();
    }
  }

  /** Everything that is there, and what is known and gone; nothing where that cannot be told. */
  async #find(signal: AbortSignal): Promise<ReadonlyMap<string, Found>> {
    const { directory, log } = this.#options;
    try {
      const { byName, directories } = await findToolsets(directory, signal);
      this.#problem = undefined;
      this.#watched = directories;
      const gone = [...this.#known.keys()].filter((name) => !byName.has(name));
      return new Map<string, Found>([...byName, ...gone.map((name) => [name, isGone] as const)]);
    } catch (error) {
      signal.throwIfAborted();
      const problem = `TOOLSETS_DIR ${problemOf(error)}`;
      if (this.#problem !== problem)
        logEvent(log, "toolset.directory_unreadable", { reason: problem });
      this.#problem = problem;
      return new Map();
    }
  }

  /** Puts a found state in force, or reports why not. Whether the parts have changed. */
  async #load(
    name: string,
    { state, source, problem }: Found,
    signal: AbortSignal,
  ): Promise<boolean> {
    const { log } = this.#options;
    const { part: before, problem: problemBefore } = this.#known.get(name) ?? {};
    if (state === undefined) {
      this.#known.delete(name);
      if (before !== undefined) logEvent(log, "toolset.removed", { toolset: name });
      return before !== undefined;
    }
    try {
      if (problem !== undefined || source === undefined) throw new ToolsetError(problem);
      const { part, snapshot } = await this.#read(name, source, state, signal);
      this.#known.set(name, { state, candidate: undefined, part, problem: undefined });
      // At the same moment, so that no `retain` comes between.
      await this.#snapshots.keep(name, snapshot);
      if (part.revision === before?.revision) return false;
      const { revision, manifest } = part;
      logEvent(log, "toolset.loaded", { toolset: name, revision, tools: manifest.tools.size });
      return true;
    } catch (error) {
      signal.throwIfAborted();
      const reason = problemOf(error);
      const isFinal = problem !== undefined || error instanceof ToolsetError;
      this.#known.set(name, {
        state: isFinal ? state : unknownState,
        candidate: isFinal ? undefined : { state },
        part: before,
        problem: reason,
      });
      if (isFinal || reason !== problemBefore)
        logEvent(log, "toolset.unusable", { toolset: name, reason, isKept: before !== undefined });
      return false;
    }
  }

  async #read(
    name: string,
    source: ToolsetSource,
    state: string,
    signal: AbortSignal,
  ): Promise<{ readonly part: ToolsetPart; readonly snapshot: Snapshot }> {
    const snapshot = await this.#snapshots.make(source, signal);
    try {
      if ((await stateOf(source)).state !== state)
        throw new ToolsetError("changed while it was copied");
      return { part: await readPart({ name, ...snapshot }, this.#options), snapshot };
    } catch (error) {
      await this.#snapshots.drop(snapshot);
      throw error;
    }
  }
}
