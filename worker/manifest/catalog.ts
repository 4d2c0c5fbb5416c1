/**
 * The manifest in force: loaded once, then following its file, keeping the last good one whatever
 * happens to the file.
 */
import type { Clock } from "../support/clock.ts";
import { type FileProblem, formatProblem, problemOfFile } from "../support/file-problems.ts";
import { type EventLog, logEvent } from "../telemetry/log-event.ts";
import { type AdmitTool, withoutRefused } from "./availability.ts";
import { diffManifests } from "./diff.ts";
import {
  type Manifest,
  type ManifestChange,
  ManifestError,
  type ToolEntry,
  type UnavailableTool,
} from "./manifest.ts";
import { type ParsedManifest, parseManifest } from "./parse.ts";
import { type FileState, readFileState, watchFile } from "./watch.ts";

/**
 * Milliseconds between two tries of tools that were refused: an installed package does not change
 * the file.
 */
export const recheckMs = 60_000;

/** Where the catalog tells an operator what happened; a pino logger fits. */
export type ManifestLog = EventLog<"info" | "warn" | "error">;

/** What a catalog is opened with. */
export interface CatalogOptions {
  readonly path: string;
  /** Names of the sandbox profiles that exist. */
  readonly profileNames: readonly string[];
  /** Queues that this worker consumes; every queue unless given. */
  readonly queues?: readonly string[];
  /** Which tools can be served here; all of them when absent. */
  readonly admit?: AdmitTool;
  readonly log: ManifestLog;
  readonly clock: Clock;
  /** Bounds the opening; afterwards the catalog lives until it is disposed of. */
  readonly signal: AbortSignal;
  /**
   * Milliseconds between looks at the file, for a new content to settle, and between tries of
   * refused tools.
   */
  readonly intervals?: {
    readonly pollMs?: number;
    readonly settleMs?: number;
    readonly recheckMs?: number;
  };
  /** Whether events of the file system make it look sooner. Default: true. */
  readonly hints?: boolean;
}

/**
 * The tools to serve. It follows the manifest file; a file that cannot be used changes nothing
 * here.
 */
export interface ToolCatalog extends AsyncDisposable {
  /** The last manifest that could be used; replaced as a whole, never changed. */
  readonly manifest: Manifest;
  /** What is odd about its file and changes nothing: one line for each, with its place. */
  readonly warnings: readonly string[];

  /**
   * What changed since the catalog was opened, until it is disposed of. Every iteration starts
   * there.
   *
   * Changes coalesce: each step leads from the manifest of the step before straight to the newest
   * one, so a slow consumer is late but never behind. A consumer makes
   * `answeredTools(change.manifest)` its desired set; then it does not matter that the first step
   * may tell what it knows already. The catalog swaps first and tells afterwards: a call that still
   * arrives for a removed tool finds nothing and is answered `TOOL_NOT_AVAILABLE`.
   */
  readonly changes: AsyncIterable<ManifestChange>;

  /**
   * The entry of a served tool. Reads memory only, so asking can neither wait nor consume a change.
   */
  resolve(toolName: string): ToolEntry | undefined;

  /** A tool of the manifest that is not served, with the reason. Reads memory only. */
  unavailable(toolName: string): UnavailableTool | undefined;
}

/**
 * Loads the manifest and follows its file.
 *
 * Throws ManifestError when the file cannot be used now: a worker does not start on a broken
 * manifest. Later only the log tells. Rejects with the signal's reason when it aborts.
 *
 * | event                                          | level | facts                                    |
 * |------------------------------------------------|-------|------------------------------------------|
 * | `manifest loaded`                              | info  | revision, tools, added, removed, changed |
 * | `manifest usable again`                        | info  | revision                                 |
 * | `manifest has warnings`                        | warn  | warnings                                 |
 * | `tool not served`                              | warn  | tool, reason                             |
 * | `tool left to workers of its queue`            | info  | tool, queue                              |
 * | `file events lost, manifest is polled`         | warn  | err                                      |
 * | `manifest not usable, last good one kept`      | error | err, revision                            |
 * | `manifest no longer followed`                  | error | err                                      |
 */
export async function openCatalog(options: CatalogOptions): Promise<ToolCatalog> {
  const state = await readFileState(options.path);
  const parsed = parseState(state, options);
  const admit = options.admit ?? (() => undefined);
  const manifest = await withoutRefused(parsed.manifest, noTools, admit, options.signal);
  logWarnings(options.log, linesOf(parsed.warnings, options));
  logServed(options.log, noTools, manifest);
  return new FileCatalog(options, state, parsed, manifest);
}

const noTools: Manifest = { revision: "", tools: new Map(), unavailable: new Map() };

class FileCatalog implements ToolCatalog {
  readonly #options: CatalogOptions;
  readonly #opened: Manifest;
  readonly #closing = new AbortController();
  /** Fulfils when the catalog is closed, rejects when it can follow the file no longer. */
  readonly #following: Promise<void>;
  /** Everything in the file that is now, or was last, good. */
  #parsed: ParsedManifest;
  /** The part of it that is served. */
  #manifest: Manifest;
  /** Whether the file as it is now can be used. */
  #isUsable = true;
  #swapped = Promise.withResolvers<void>();
  /**
   * The end of the work in progress: a reload and a second try of refused tools must not overtake
   * each other.
   */
  #busy: Promise<void> = Promise.resolve();

  constructor(
    options: CatalogOptions,
    known: FileState,
    parsed: ParsedManifest,
    manifest: Manifest,
  ) {
    this.#options = options;
    this.#parsed = parsed;
    this.#opened = manifest;
    this.#manifest = manifest;
    this.#following = this.#follow(known);
    // A failure is told by the log and by `changes`.
    this.#following.catch(() => {});
  }

  get manifest(): Manifest {
    return this.#manifest;
  }

  get warnings(): readonly string[] {
    return linesOf(this.#parsed.warnings, this.#options);
  }

  get changes(): AsyncIterable<ManifestChange> {
    return { [Symbol.asyncIterator]: () => this.#iterateChanges() };
  }

  resolve(toolName: string): ToolEntry | undefined {
    return this.#manifest.tools.get(toolName);
  }

  unavailable(toolName: string): UnavailableTool | undefined {
    return this.#manifest.unavailable.get(toolName);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort();
    await Promise.allSettled([this.#following]);
  }

  async *#iterateChanges(): AsyncGenerator<ManifestChange, void, undefined> {
    let seen = this.#opened;
    while (!this.#closing.signal.aborted) {
      const change = diffManifests(seen, this.#manifest);
      if (change === undefined) {
        await Promise.race([this.#swapped.promise, this.#following]);
      } else {
        seen = change.manifest;
        yield change;
      }
    }
  }

  async #follow(known: FileState): Promise<void> {
    try {
      await Promise.all([this.#followFile(known), this.#retryRefused()]);
    } catch (error) {
      if (this.#closing.signal.aborted) return;
      logEvent(this.#options.log, "manifest.follow_failed", { err: error });
      throw error;
    }
  }

  async #followFile(known: FileState): Promise<void> {
    const { path, clock, log, hints = true, intervals = {} } = this.#options;
    const onHintsLost = (error: unknown): void =>
      logEvent(log, "manifest.file_events_lost", { err: error });
    const options = { ...intervals, clock, known, hints, onHintsLost };
    for await (const state of watchFile(path, options, this.#closing.signal)) {
      await this.#alone(() => this.#load(state));
    }
  }

  async #retryRefused(): Promise<void> {
    const { clock, intervals } = this.#options;
    for (;;) {
      await clock.sleep(intervals?.recheckMs ?? recheckMs, this.#closing.signal);
      await this.#alone(async () => {
        const { size } = this.#parsed.manifest.tools;
        if (this.#manifest.tools.size < size) await this.#serve(this.#parsed);
      });
    }
  }

  async #load(state: FileState): Promise<void> {
    const { log } = this.#options;
    try {
      const parsed = parseState(state, this.#options);
      if (!this.#isUsable) {
        this.#isUsable = true;
        logEvent(log, "manifest.usable_again", { revision: parsed.manifest.revision });
      }
      logWarnings(log, linesOf(parsed.warnings, this.#options));
      await this.#serve(parsed);
    } catch (error) {
      if (!(error instanceof ManifestError)) throw error;
      this.#isUsable = false;
      const { revision } = this.#manifest;
      logEvent(log, "manifest.unusable", { err: error, revision });
    }
  }

  async #serve(parsed: ParsedManifest): Promise<void> {
    const { log, admit = () => undefined } = this.#options;
    const before = this.#manifest;
    const manifest = await withoutRefused(parsed.manifest, before, admit, this.#closing.signal);
    this.#parsed = parsed;
    this.#manifest = manifest;
    logServed(log, before, manifest);
    this.#swapped.resolve();
    this.#swapped = Promise.withResolvers<void>();
  }

  async #alone(work: () => Promise<void>): Promise<void> {
    const done = this.#busy.then(work);
    this.#busy = done.catch(() => {});
    await done;
  }
}

function parseState(state: FileState, options: CatalogOptions): ParsedManifest {
  if (state.readable) return parseManifest(state.bytes, options);
  throw new ManifestError(options.path, [problemOfFile(state.reason)]);
}

function linesOf(problems: readonly FileProblem[], { path }: CatalogOptions): readonly string[] {
  return problems.map((problem) => formatProblem(path, problem));
}

function logWarnings(log: ManifestLog, warnings: readonly string[]): void {
  if (warnings.length > 0) logEvent(log, "manifest.has_warnings", { warnings });
}

function logServed(log: ManifestLog, before: Manifest, manifest: Manifest): void {
  const { revision, tools, unavailable } = manifest;
  const change = diffManifests(before, manifest);
  if (change !== undefined || revision !== before.revision) {
    const { added = [], removed = [], changed = [] } = change ?? {};
    logEvent(log, "manifest.loaded", { revision, tools: tools.size, added, removed, changed });
  }
  for (const [tool, { reason, queue }] of unavailable) {
    if (before.unavailable.get(tool)?.reason === reason) continue;
    if (queue === undefined) logEvent(log, "tool.not_served", { tool, reason });
    else logEvent(log, "tool.left_to_queue", { tool, queue });
  }
}
