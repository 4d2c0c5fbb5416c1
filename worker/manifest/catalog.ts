/**
 * The manifest in force: the catalog follows the file, and keeps the last usable manifest.
 */
import type { Clock } from "../support/clock.ts";
import { formatProblem, problemOfFile } from "../support/file-problems.ts";
import { settlesWithin } from "../support/timeout.ts";
import { logEvent } from "../telemetry/log-event.ts";
import {
  type Manifest,
  type ManifestChange,
  ManifestError,
  type ToolEntry,
  type UnavailableTool,
} from "./manifest.ts";
import { parseManifest } from "./parse.ts";
import { ServedManifest, type ServingOptions, logWarnings } from "./served.ts";
import { type MergedManifest, withToolsets } from "./toolsets/merge.ts";
import type { Toolsets } from "./toolsets/toolsets.ts";
import { type FileState, readFileState, watchFile } from "./watch.ts";

/** Milliseconds between two checks of refused tools: a new package leaves the file unchanged. */
export const recheckMs = 60_000;

/** Options of {@link openCatalog}. */
export interface CatalogOptions extends ServingOptions {
  readonly path: string;
  /** Names of all sandbox profiles. */
  readonly profileNames: readonly string[];
  /** Queues that this worker consumes; all by default. */
  readonly queues?: readonly string[];
  /** Whether this worker runs executables; by default it does. */
  readonly runsExecutables?: boolean;
  /** Toolsets beside the file; their owner disposes them after the catalog. */
  readonly toolsets?: Pick<Toolsets, "parts" | "problems" | "follow" | "retain">;
  /** Resolves when a refused tool may have become available before the next check. */
  readonly admitChanged?: () => Promise<void>;
  readonly clock: Clock;
  /** Cancels the opening. */
  readonly signal: AbortSignal;
  /** Milliseconds between polls, for a content to settle, and between checks of refused tools. */
  readonly intervals?: {
    readonly pollMs?: number;
    readonly settleMs?: number;
    readonly recheckMs?: number;
  };
  /** Whether file events trigger a poll. Default: true. */
  readonly hints?: boolean;
}

/** The tools to serve, by the last usable manifest. */
export interface ToolCatalog extends AsyncDisposable {
  /** The last usable manifest, immutable. */
  readonly manifest: Manifest;
  /** Warnings of its file and of the toolsets, one line each. */
  readonly warnings: readonly string[];

  /** Whether the file is the manifest in force; else the last usable one is. */
  readonly isUsable: boolean;

  /**
   * Changes since the opening, until the disposal. They coalesce: each step leads to the newest
   * manifest, and the first may repeat known tools. The manifest is replaced before its step.
   */
  readonly changes: AsyncIterable<ManifestChange>;

  /** The entry of a served tool. */
  resolve(toolName: string): ToolEntry | undefined;

  /** A tool of the manifest that is not served, with the reason. */
  unavailable(toolName: string): UnavailableTool | undefined;
}

/**
 * Loads the manifest and follows its file. Rejects with ManifestError for an unusable file, and
 * with the signal's reason. Later errors are logged.
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
  const file = parseState(state, options);
  const merged = withToolsets(file, options.toolsets?.parts ?? []);
  // Asked for before the check, so that no change during it is lost.
  const change = (options.admitChanged ?? noChange)();
  const served = await ServedManifest.open(merged, options, options.signal);
  return new FileCatalog(options, { state, file, served, change });
}

const noChange = (): Promise<void> => Promise.withResolvers<void>().promise;

/** What a catalog begins with. */
interface Opened {
  readonly state: FileState;
  readonly file: MergedManifest;
  readonly served: ServedManifest;
  /** The first change of what may be available. */
  readonly change: Promise<void>;
}

class FileCatalog implements ToolCatalog {
  readonly #options: CatalogOptions;
  readonly #served: ServedManifest;
  readonly #closing = new AbortController();
  /** Resolves when the catalog is closed, rejects when it cannot follow the file. */
  readonly #following: Promise<void>;
  /** The last usable file. */
  #file: MergedManifest;
  /** Whether the present file is usable. */
  #isUsable = true;
  /** End of the running work: reloads and checks of refused tools run in sequence. */
  #busy: Promise<void> = Promise.resolve();

  constructor(options: CatalogOptions, { state, file, served, change }: Opened) {
    this.#options = options;
    this.#file = file;
    this.#served = served;
    this.#following = this.#follow(state, change);
    // The log and `changes` report a failure.
    this.#following.catch(() => {});
  }

  get manifest(): Manifest {
    return this.#served.manifest;
  }

  get warnings(): readonly string[] {
    return [...this.#served.newest.warnings, ...(this.#options.toolsets?.problems ?? [])];
  }

  get isUsable(): boolean {
    return this.#isUsable;
  }

  get changes(): AsyncIterable<ManifestChange> {
    const { signal } = this.#closing;
    return { [Symbol.asyncIterator]: () => this.#served.changes(this.#following, signal) };
  }

  resolve(toolName: string): ToolEntry | undefined {
    return this.manifest.tools.get(toolName);
  }

  unavailable(toolName: string): UnavailableTool | undefined {
    return this.manifest.unavailable.get(toolName);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort();
    await Promise.allSettled([this.#following]);
  }

  async #follow(known: FileState, firstChange: Promise<void>): Promise<void> {
    try {
      await Promise.all([
        this.#followFile(known),
        this.#retryRefused(firstChange),
        this.#options.toolsets?.follow(
          () => this.#alone(() => this.#serveAll()),
          this.#closing.signal,
        ),
      ]);
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

  async #retryRefused(firstChange: Promise<void>): Promise<void> {
    const { clock, intervals, admitChanged = noChange } = this.#options;
    const { signal } = this.#closing;
    for (let next = firstChange; ;) {
      await settlesWithin(next, intervals?.recheckMs ?? recheckMs, clock, signal);
      signal.throwIfAborted();
      // Before the check, as at the opening.
      next = admitChanged();
      await this.#alone(async () => {
        if (this.#served.refusesTools) await this.#served.replace(this.#served.newest, signal);
      });
    }
  }

  async #load(state: FileState): Promise<void> {
    const { log } = this.#options;
    try {
      this.#file = parseState(state, this.#options);
      if (!this.#isUsable) {
        this.#isUsable = true;
        logEvent(log, "manifest.usable_again", { revision: this.#file.manifest.revision });
      }
      await this.#serveAll();
    } catch (error) {
      if (!(error instanceof ManifestError)) throw error;
      this.#isUsable = false;
      const { revision } = this.manifest;
      logEvent(log, "manifest.unusable", { err: error, revision });
    }
  }

  /** Serves the file and the toolsets as they are now. */
  async #serveAll(): Promise<void> {
    const { log, toolsets } = this.#options;
    const merged = withToolsets(this.#file, toolsets?.parts ?? []);
    logWarnings(log, merged.warnings);
    await this.#served.replace(merged, this.#closing.signal);
  }

  async #alone(work: () => Promise<void>): Promise<void> {
    const done = this.#busy.then(work);
    this.#busy = done.catch(() => {});
    await done;
  }
}

function parseState(state: FileState, options: CatalogOptions): MergedManifest {
  if (state.readable) {
    const { manifest, warnings } = parseManifest(state.bytes, options);
    return { manifest, warnings: warnings.map((each) => formatProblem(options.path, each)) };
  }
  throw new ManifestError(options.path, [problemOfFile(state.reason)]);
}
