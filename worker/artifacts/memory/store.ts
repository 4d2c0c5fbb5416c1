/**
 * Artifacts in this process's memory, for tests and demonstrations.
 */
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { ArtifactReference } from "../../protocol/invocation.ts";
import { exactly } from "../content.ts";
import { artifactTitle, guarded, notFound, notSaved } from "../failures.ts";
import { NameList } from "../names.ts";
import { artifactKey, artifactLevels } from "../scope.ts";
import type { ArtifactKey, ArtifactLevel } from "../scope.ts";
import type {
  ArtifactFacts,
  ArtifactMetadata,
  ArtifactScope,
  ArtifactSource,
  ArtifactStore,
  OpenedArtifact,
  SavedArtifact,
} from "../store.ts";

/** Default capacity of a store in bytes. */
export const defaultTotalBytes = 256 * 1024 * 1024;

/** Overhead of a version in bytes, so that empty ones are not free. */
export const versionOverheadBytes = 1024;

/** Bytes of a reader's chunk. */
const chunkBytes = 64 * 1024;

interface StoredVersion {
  readonly etag: string;
  readonly content: Buffer;
  readonly metadata: ArtifactMetadata;
}

/** Undefined where a version is deleted. */
type Versions = (StoredVersion | undefined)[];

/**
 * Creates an empty store of `totalBytes`, including `versionOverheadBytes` per version. A larger
 * save rejects with StoreError `unavailable`; the store evicts nothing.
 */
export function createMemoryStore(options: { totalBytes?: number } = {}): ArtifactStore {
  return new MemoryStore(options.totalBytes ?? defaultTotalBytes);
}

class MemoryStore implements ArtifactStore {
  readonly kind = "memory";
  readonly #totalBytes: number;
  /** Bytes of stored and arriving versions. */
  #usedBytes = 0;
  /** By `levelKey` and name; a version's number is its index, and the last is never deleted. */
  readonly #levels = new Map<string, Map<string, Versions>>();
  #saves = 0;

  constructor(totalBytes: number) {
    this.#totalBytes = totalBytes;
  }

  async open(
    scope: ArtifactScope,
    reference: ArtifactReference,
    signal: AbortSignal,
  ): Promise<OpenedArtifact> {
    const { facts, content } = this.#find(scope, reference, signal);
    return { ...facts, body: Readable.from(chunksOf(content), { objectMode: false }) };
  }

  async stat(
    scope: ArtifactScope,
    reference: ArtifactReference,
    signal: AbortSignal,
  ): Promise<ArtifactFacts> {
    return this.#find(scope, reference, signal).facts;
  }

  async save(
    scope: ArtifactScope,
    filename: string,
    source: ArtifactSource,
    metadata: ArtifactMetadata,
    signal: AbortSignal,
  ): Promise<SavedArtifact> {
    const key = artifactKey(scope, filename);
    return guarded(`${artifactTitle(key)} could not be saved`, signal, async () => {
      const { sizeBytes } = source;
      const charge = sizeBytes + versionOverheadBytes;
      if (!(this.#usedBytes + charge <= this.#totalBytes)) {
        throw notSaved(key, `${sizeBytes} bytes do not fit into the artifact store`);
      }
      this.#usedBytes += charge;
      try {
        const content = await collect(source, key, signal);
        const etag = String(this.#saves++);
        const version = this.#append(key, { content, metadata, etag });
        return { version, sizeBytes, saveId: etag };
      } catch (error) {
        this.#usedBytes -= charge;
        throw error;
      }
    });
  }

  async deleteVersion(
    scope: ArtifactScope,
    filename: string,
    { version, saveId }: SavedArtifact,
    signal: AbortSignal,
  ): Promise<boolean> {
    const key = artifactKey(scope, filename);
    signal.throwIfAborted();
    const stored = this.#stored(key);
    const found = stored[version];
    if (found?.etag !== saveId) return false;
    stored[version] = undefined;
    while (stored.length > 0 && stored.at(-1) === undefined) stored.pop();
    this.#usedBytes -= found.content.byteLength + versionOverheadBytes;
    return true;
  }

  async names(scope: ArtifactScope, signal: AbortSignal): Promise<readonly string[]> {
    const levels = artifactLevels(scope);
    signal.throwIfAborted();
    const list = new NameList(scope);
    for (const level of levels) {
      for (const [name, versions] of this.#levels.get(levelKey(level)) ?? []) {
        if (versions.length > 0) list.add(level, name);
      }
    }
    return list.sorted();
  }

  async versions(
    scope: ArtifactScope,
    filename: string,
    signal: AbortSignal,
  ): Promise<readonly number[]> {
    const key = artifactKey(scope, filename);
    signal.throwIfAborted();
    const stored = this.#stored(key);
    return [...stored.keys()].filter((version) => stored[version] !== undefined);
  }

  async check(signal: AbortSignal): Promise<readonly string[]> {
    signal.throwIfAborted();
    return [];
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#levels.clear();
  }

  #find(
    scope: ArtifactScope,
    reference: ArtifactReference,
    signal: AbortSignal,
  ): { readonly facts: ArtifactFacts; readonly content: Buffer } {
    const key = artifactKey(scope, reference.filename);
    signal.throwIfAborted();
    const stored = this.#stored(key);
    const version = reference.version ?? stored.length - 1;
    const found = stored[version];
    if (found === undefined) throw notFound(key, reference.version);
    const { content, metadata, etag } = found;
    return { facts: { version, sizeBytes: content.byteLength, metadata, etag }, content };
  }

  #stored(key: ArtifactKey): Versions {
    return this.#levels.get(levelKey(key))?.get(key.name) ?? [];
  }

  #append(key: ArtifactKey, version: StoredVersion): number {
    const stored = this.#stored(key);
    const level = this.#levels.get(levelKey(key)) ?? new Map<string, Versions>();
    this.#levels.set(levelKey(key), level.set(key.name, stored));
    return stored.push(version) - 1;
  }
}

function levelKey({ root, userId, sessionOrUser }: ArtifactLevel): string {
  return JSON.stringify([root, userId, sessionOrUser]);
}

async function collect(
  source: ArtifactSource,
  key: ArtifactKey,
  signal: AbortSignal,
): Promise<Buffer> {
  const content = Buffer.alloc(source.sizeBytes);
  await pipeline(
    source.open(),
    exactly(source.sizeBytes, key),
    async (chunks) => {
      let offset = 0;
      for await (const chunk of chunks) {
        content.set(chunk, offset);
        offset += chunk.byteLength;
      }
    },
    { signal },
  );
  return content;
}

/** Copies the content, since readers may write into their chunks. */
function* chunksOf(content: Buffer): Generator<Buffer> {
  for (let start = 0; start < content.byteLength; start += chunkBytes) {
    yield Buffer.from(content.subarray(start, start + chunkBytes));
  }
}
