/**
 * The toolsets of a directory: each is a directory or a ZIP file with a manifest of its own. They
 * are polled as the manifest is, and one that cannot be used leaves the others, and its last good
 * state, as they are.
 */
import { constants } from "node:fs";
import { lstat, readdir } from "node:fs/promises";
import { join } from "node:path";
import { ChangeHints } from "../../support/change-hints.ts";
import type { Clock } from "../../support/clock.ts";
import type { NewId } from "../../support/ids.ts";
import { type EventLog, logEvent } from "../../telemetry/log-event.ts";
import { pollMs, settleMs } from "../watch.ts";
import { CopyError, ToolsetError } from "./budget.ts";
import { type PartOptions, type ToolsetPart, isToolsetName, readPart } from "./part.ts";
import {
  type Snapshot,
  type ToolsetLease,
  type ToolsetRevision,
  type ToolsetSource,
  Snapshots,
} from "./snapshots.ts";
import { treeState } from "./tree.ts";

/** Largest number of toolsets. */
export const maxToolsets = 100;
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

/** A toolset as the last poll found it. */
interface Found {
  /** Differs after a change; undefined where it is gone. */
  readonly state: string | undefined;
  readonly source: ToolsetSource | undefined;
  /** Why it cannot be read. */
  readonly problem?: string;
}

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

  /** Everything that is there, and what is known and gone. */
  async #find(signal: AbortSignal): Promise<ReadonlyMap<string, Found>> {
    const { directory } = this.#options;
    const found = new Map<string, Found>();
    const watched = [directory];
    const sources = await this.#list();
    if (sources === undefined) return found;
    for (const [name, source] of sources) {
      signal.throwIfAborted();
      if (typeof source === "string") {
        found.set(name, { state: source, source: undefined, problem: source });
        continue;
      }
      try {
        const { state, directories } = await stateOf(source);
        watched.push(...directories);
        found.set(name, { state, source });
      } catch (error) {
        const problem = problemOf(error);
        found.set(name, { state: problem, source, problem });
      }
    }
    for (const name of this.#known.keys())
      if (!found.has(name)) found.set(name, { state: undefined, source: undefined });
    this.#watched = watched;
    return found;
  }

  /** The toolsets by name, or why they are none; undefined when the directory cannot be read. */
  async #list(): Promise<ReadonlyMap<string, ToolsetSource | string> | undefined> {
    const { directory, log } = this.#options;
    const sources = new Map<string, ToolsetSource | string>();
    try {
      const entries = await readdir(directory, { withFileTypes: true });
      for (const entry of entries.sort((a, b) => (a.name < b.name ? -1 : 1))) {
        if (entry.name.startsWith(".")) continue;
        const kind = entry.isDirectory() ? "directory" : "archive";
        const name = kind === "archive" ? entry.name.replace(/\.zip$/, "") : entry.name;
        if (entry.isSymbolicLink()) sources.set(name, "is a link");
        else if (kind === "archive" && !entry.name.endsWith(".zip")) continue;
        else if (!isToolsetName(name)) sources.set(name, nameProblem);
        else if (sources.has(name)) sources.set(name, "is there twice, as directory and ZIP file");
        else if (sources.size >= maxToolsets)
          sources.set(name, `is one of more than ${maxToolsets}`);
        else sources.set(name, { path: join(directory, entry.name), kind });
        if (sources.size > 2 * maxToolsets) break;
      }
      this.#problem = undefined;
      return sources;
    } catch (error) {
      const problem = `TOOLSETS_DIR ${problemOf(error)}`;
      if (this.#problem !== problem)
        logEvent(log, "toolset.directory_unreadable", { reason: problem });
      this.#problem = problem;
      return undefined;
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

const nameProblem =
  "has a name that is none: 1 to 50 letters, digits, - and single _ inside, a letter or digit first";

async function stateOf({
  path,
  kind,
}: ToolsetSource): Promise<{ readonly state: string; readonly directories: readonly string[] }> {
  if (kind === "directory") {
    const { fingerprint, directories } = await treeState(path);
    return { state: fingerprint, directories };
  }
  const { mode, size, mtimeMs, ctimeMs, ino } = await lstat(path);
  if ((mode & constants.S_IFMT) !== constants.S_IFREG) throw new ToolsetError("is no file");
  return { state: [size, mtimeMs, ctimeMs, ino].join(), directories: [] };
}

/** In words without paths of the host. */
function problemOf(error: unknown): string {
  if (error instanceof ToolsetError || error instanceof CopyError) return error.message;
  const { code } = error as NodeJS.ErrnoException;
  if (code === "ENOENT") return "does not exist";
  if (code === undefined) throw error;
  return `cannot be read (${code})`;
}
