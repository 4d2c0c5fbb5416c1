/**
 * A local cache in front of a store: it reads versions that were read before from its own disk.
 *
 * Each reading asks the store for the version's facts first, so that deletions, permissions and
 * replaced content have the same effect as without a cache.
 */
import type { Readable } from "node:stream";
import type { ArtifactReference } from "../../protocol/invocation.ts";
import type { Clock } from "../../support/clock.ts";
import { type EventLog, logEvent } from "../../telemetry/log-event.ts";
import type { MarkStore } from "../marks.ts";
import { artifactKey } from "../scope.ts";
import { StoreError } from "../store.ts";
import type {
  AcceptFacts,
  ArtifactFacts,
  ArtifactMetadata,
  ArtifactScope,
  ArtifactSource,
  ArtifactStore,
  CacheCounts,
  OpenedArtifact,
  SavedArtifact,
  StoreAccess,
} from "../store.ts";
import { Entries } from "./entries.ts";
import { type Entry, entryKey, etagDigest } from "./entry.ts";
import type { CacheBounds } from "./space.ts";
import { SharedWork } from "./shared-work.ts";

/** The largest artifact that is kept, as a part of the cache. */
const largestPart = 1 / 4;

/** Milliseconds without the cache after a failure of it. */
const pauseMs = 60_000;

/** Where a cache is, and what it may hold. */
export interface CacheConfig extends CacheBounds {
  readonly directory: string;
}

/** A store behind a cache. */
export interface CachedStoreParts {
  /** Disposed with the cache. */
  readonly store: ArtifactStore;
  /** What tells the store from others, as JSON has it. */
  readonly identity: readonly unknown[];
  readonly config: CacheConfig;
  readonly clock: Pick<Clock, "monotonicMs">;
  readonly log: EventLog<"warn">;
}

/** Creates it without access to the directory; `check` and the first reading do that. */
export function createCachedStore(parts: CachedStoreParts): ArtifactStore {
  return new CachedStore(parts);
}

class CachedStore implements ArtifactStore {
  readonly kind: string;
  readonly access?: (signal: AbortSignal) => Promise<StoreAccess>;
  readonly #parts: CachedStoreParts;
  readonly #store: ArtifactStore;
  readonly #work = new SharedWork();
  readonly #counts = { hits: 0, misses: 0 };
  #entries: Promise<Entries> | undefined;
  #pausedUntilMs = -Infinity;

  constructor(parts: CachedStoreParts) {
    const { store } = parts;
    this.#parts = parts;
    this.#store = store;
    this.kind = store.kind;
    if (store.access !== undefined) this.access = store.access.bind(store);
  }

  get marks(): MarkStore | undefined {
    return this.#store.marks;
  }

  get cached(): CacheCounts {
    return { ...this.#counts };
  }

  async open(
    scope: ArtifactScope,
    reference: ArtifactReference,
    signal: AbortSignal,
    accept?: AcceptFacts,
  ): Promise<OpenedArtifact> {
    const facts = await this.#store.stat(scope, reference, signal);
    await accept?.(facts);
    const cached = await this.#openCached(scope, reference.filename, facts, signal);
    if (cached === undefined) this.#counts.misses++;
    return cached ?? this.#store.open(scope, reference, signal);
  }

  stat(
    scope: ArtifactScope,
    reference: ArtifactReference,
    signal: AbortSignal,
  ): Promise<ArtifactFacts> {
    return this.#store.stat(scope, reference, signal);
  }

  save(
    scope: ArtifactScope,
    filename: string,
    source: ArtifactSource,
    metadata: ArtifactMetadata,
    signal: AbortSignal,
  ): Promise<SavedArtifact> {
    return this.#store.save(scope, filename, source, metadata, signal);
  }

  async deleteVersion(
    scope: ArtifactScope,
    filename: string,
    saved: SavedArtifact,
    signal: AbortSignal,
  ): Promise<boolean> {
    const isDeleted = await this.#store.deleteVersion(scope, filename, saved, signal);
    if (isDeleted)
      await this.#unlessTroubled(async (entries) => {
        await entries.drop(this.#keyOf(scope, filename, saved.version));
      }, signal);
    return isDeleted;
  }

  names(scope: ArtifactScope, signal: AbortSignal): Promise<readonly string[]> {
    return this.#store.names(scope, signal);
  }

  versions(
    scope: ArtifactScope,
    filename: string,
    signal: AbortSignal,
  ): Promise<readonly number[]> {
    return this.#store.versions(scope, filename, signal);
  }

  /** Also gives disk back that others have used up meanwhile: calls may be refused for it. */
  async check(signal: AbortSignal): Promise<readonly string[]> {
    await this.#unlessTroubled((entries) => entries.freeDisk(), signal);
    return this.#store.check(signal);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const entries = await this.#entries?.catch(() => undefined);
    await entries?.[Symbol.asyncDispose]();
    await this.#store[Symbol.asyncDispose]();
  }

  /** Undefined where the store itself has to be read. */
  async #openCached(
    scope: ArtifactScope,
    filename: string,
    facts: ArtifactFacts,
    signal: AbortSignal,
  ): Promise<OpenedArtifact | undefined> {
    const { version, etag, sizeBytes } = facts;
    if (sizeBytes > this.#parts.config.maxBytes * largestPart) return undefined;
    const key = this.#keyOf(scope, filename, version);
    const entry = { key, etag: etagDigest(etag), sizeBytes };
    return this.#unlessTroubled(async (entries) => {
      let isFilled = false;
      let opened = await entries.openVerified(entry);
      if (opened === undefined) {
        const fetch = async (over: AbortSignal): Promise<void> => {
          isFilled = await this.#fetch(entries, entry, scope, { filename, version }, over);
        };
        await this.#work.join(`${key}.${entry.etag}`, fetch, signal);
        opened = await entries.openVerified(entry);
      }
      if (opened === undefined) return undefined;
      this.#counts[isFilled ? "misses" : "hits"]++;
      return { ...facts, ...opened };
    }, signal);
  }

  /** Verifies an entry, or fills it from the store, and says whether it did. */
  async #fetch(
    entries: Entries,
    entry: Entry,
    scope: ArtifactScope,
    reference: ArtifactReference,
    signal: AbortSignal,
  ): Promise<boolean> {
    const found = await entries.verify(entry, signal);
    if (found === "verified") return false;
    if (found === "damaged")
      logEvent(this.#parts.log, "artifacts.cache_damaged", { sizeBytes: entry.sizeBytes });
    const openContent = async (): Promise<Readable | undefined> => {
      const { etag, body } = await this.#store.open(scope, reference, signal);
      if (etagDigest(etag) === entry.etag) return body;
      body.destroy();
      return undefined;
    };
    await entries.fill(entry, openContent, signal);
    return true;
  }

  /** Undefined after a failure of the cache, and for some time after it. */
  async #unlessTroubled<T>(
    act: (entries: Entries) => Promise<T>,
    signal: AbortSignal,
  ): Promise<T | undefined> {
    const { clock, log } = this.#parts;
    if (clock.monotonicMs() < this.#pausedUntilMs) return undefined;
    try {
      return await act(await this.#open());
    } catch (error) {
      signal.throwIfAborted();
      // The version may be gone: then the reference means another one.
      if (error instanceof StoreError && error.reason === "not-found") return undefined;
      if (error instanceof StoreError) throw error;
      this.#pausedUntilMs = clock.monotonicMs() + pauseMs;
      logEvent(log, "artifacts.cache_paused", { err: error });
      return undefined;
    }
  }

  #open(): Promise<Entries> {
    const { directory, ...bounds } = this.#parts.config;
    this.#entries ??= Entries.open(directory, bounds).catch((error: unknown) => {
      this.#entries = undefined;
      throw error;
    });
    return this.#entries;
  }

  #keyOf(scope: ArtifactScope, filename: string, version: number): string {
    return entryKey(this.#parts.identity, artifactKey(scope, filename), version);
  }
}
