/**
 * Artifacts as objects of a bucket, in the layout that agents share.
 */
import { randomUUID } from "node:crypto";
import type { ArtifactReference } from "../../protocol/invocation.ts";
import { artifactTitle, guarded, notFound, notSaved } from "../failures.ts";
import type { MarkStore } from "../marks.ts";
import { namesNotListed } from "../names.ts";
import { type ArtifactKey, artifactKey } from "../scope.ts";
import { NotDeletedError, StoreError } from "../store.ts";
import type {
  ArtifactFacts,
  ArtifactMetadata,
  ArtifactScope,
  ArtifactSource,
  ArtifactStore,
  OpenedArtifact,
  SavedArtifact,
} from "../store.ts";
import {
  type NewObject,
  type ObjectBucket,
  type ObjectFacts,
  type ObjectLayout,
  UnknownOutcomeError,
} from "./bucket.ts";
import { CleanUps } from "./clean-ups.ts";
import { listNames, listVersions } from "./listing.ts";
import { ObjectMarks, marksPrefix } from "./marks.ts";
import {
  contentTypeOf,
  decodeMimeType,
  isOfSave,
  mimeTypeMetadata,
  saveMetadata,
} from "./metadata.ts";
import { PartBuffers } from "./part-buffers.ts";
import { keepsConditions } from "./probe.ts";
import { VersionWriter } from "./writer.ts";

/** Versions that one save tries, each taken by another saver. */
const maxTries = 200;

/** Latest versions that an opening tries, each deleted since the listing. */
const maxLatest = 5;

const unusable = "The artifact store cannot be used";

/** A store in a bucket. Its owner disposes it, and with it the bucket, after its saves. */
export class ObjectStore implements ArtifactStore {
  readonly kind: string;
  readonly #bucket: ObjectBucket;
  readonly #marks: MarkStore;
  readonly #writer: VersionWriter;
  readonly #buffers: PartBuffers;
  readonly #cleanUps = new CleanUps();
  /** Whether the server keeps conditions, once that is known. */
  #isConditional: boolean | undefined;

  /** Makes no request yet. */
  constructor(bucket: ObjectBucket) {
    this.kind = bucket.kind;
    this.#bucket = bucket;
    this.#marks = new ObjectMarks(bucket);
    this.#writer = new VersionWriter(bucket, this.#cleanUps);
    this.#buffers = new PartBuffers(bucket.partBuffers);
    this.#isConditional = bucket.isConditional || undefined;
  }

  get marks(): MarkStore | undefined {
    return this.#isConditional === false ? undefined : this.#marks;
  }

  async open(
    scope: ArtifactScope,
    reference: ArtifactReference,
    signal: AbortSignal,
  ): Promise<OpenedArtifact> {
    return this.#find(scope, reference, signal, async (key, doing) => {
      const opened = await this.#bucket.open(key, doing, signal);
      if (opened?.objection !== undefined) opened.body.destroy();
      return opened && { ...artifactFacts(opened, doing), body: opened.body };
    });
  }

  async stat(
    scope: ArtifactScope,
    reference: ArtifactReference,
    signal: AbortSignal,
  ): Promise<ArtifactFacts> {
    return this.#find(scope, reference, signal, async (key, doing) => {
      const found = await this.#bucket.head(key, signal);
      return found && artifactFacts(found, doing);
    });
  }

  async save(
    scope: ArtifactScope,
    filename: string,
    source: ArtifactSource,
    { mimeType }: ArtifactMetadata,
    signal: AbortSignal,
  ): Promise<SavedArtifact> {
    const { layout } = this.#bucket;
    const { sessionId } = scope;
    const key = artifactKey(scope, filename);
    const [prefix] = layout.prefixesOf(key, filename);
    let possible: SavedArtifact | undefined;
    try {
      const doing = `${artifactTitle(key)} could not be saved`;
      return await this.#guarded(doing, signal, async () => {
        const content = { source, key, buffers: this.#buffers, cleanUps: this.#cleanUps };
        const isConditional = this.#isConditional !== false;
        using uploader = this.#bucket.upload(content, isConditional, signal);
        const saveId = randomUUID();
        let version = await this.#next(prefix, signal);
        // Content that cannot be read uses up no version.
        await uploader.ready;
        for (let tries = 0; tries < maxTries; tries++) {
          const saved = { version, sizeBytes: source.sizeBytes, saveId };
          const object = objectOf(layout, { key, sessionId, prefix, mimeType }, saved);
          const write = { object, saveId, uploader, isConditional };
          const outcome = await this.#writer.write(write, signal).catch((error: unknown) => {
            if (!(error instanceof UnknownOutcomeError)) throw error;
            possible = saved;
            throw error.cause;
          });
          if (outcome === "own") return saved;
          // Meanwhile others may have saved more of them.
          const next = outcome === "taken" ? await this.#next(prefix, signal) : 0;
          version = Math.max(version + 1, next);
        }
        throw notSaved(key, "others keep taking its versions");
      });
    } catch (error) {
      throw possible === undefined ? error : new NotDeletedError(possible, error);
    }
  }

  async deleteVersion(
    scope: ArtifactScope,
    filename: string,
    { version, saveId }: SavedArtifact,
    signal: AbortSignal,
  ): Promise<boolean> {
    const artifact = artifactKey(scope, filename);
    const [prefix] = this.#bucket.layout.prefixesOf(artifact, filename);
    const key = `${prefix}${version}`;
    const doing = `${artifactTitle(artifact, version)} could not be deleted`;
    return this.#guarded(doing, signal, async () => {
      const found = await this.#bucket.head(key, signal);
      if (found === undefined || !isOfSave(found.metadata, saveId)) return false;
      const etag = this.#isConditional === false ? undefined : found.etag;
      return this.#bucket.delete(key, etag, signal);
    });
  }

  async names(scope: ArtifactScope, signal: AbortSignal): Promise<readonly string[]> {
    return this.#guarded(namesNotListed(scope), signal, () =>
      listNames(this.#bucket, scope, signal),
    );
  }

  async versions(
    scope: ArtifactScope,
    filename: string,
    signal: AbortSignal,
  ): Promise<readonly number[]> {
    const key = artifactKey(scope, filename);
    const prefixes = this.#bucket.layout.prefixesOf(key, filename);
    return this.#guarded(`${artifactTitle(key)} could not be listed`, signal, async () => {
      for (const prefix of prefixes) {
        const versions = await listVersions(this.#bucket, prefix, signal);
        if (versions.length > 0) return versions;
      }
      return [];
    });
  }

  /** Lists, and tries the first time whether a key can be taken once only. */
  async check(signal: AbortSignal): Promise<readonly string[]> {
    return this.#guarded(unusable, signal, async () => {
      // What workers keep for each other: a policy may forbid to list more than must be.
      await this.#bucket.list({ prefix: marksPrefix, maxEntries: 1 }, signal);
      this.#isConditional ??= await keepsConditions(this.#bucket, signal);
      if (this.#isConditional) return [];
      const { isUsable, why } = this.#bucket.withoutConditions;
      if (isUsable) return [why];
      throw new StoreError("unavailable", `${unusable}: ${why}.`);
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#cleanUps[Symbol.asyncDispose]();
    this.#bucket[Symbol.dispose]();
  }

  /** The first version among those that the reference may mean. Rejects as `open` does. */
  async #find<T>(
    scope: ArtifactScope,
    reference: ArtifactReference,
    signal: AbortSignal,
    read: (key: string, doing: string) => Promise<T | undefined>,
  ): Promise<T & { readonly version: number }> {
    const key = artifactKey(scope, reference.filename);
    const prefixes = this.#bucket.layout.prefixesOf(key, reference.filename);
    const doing = `${artifactTitle(key)} could not be opened`;
    return this.#guarded(doing, signal, async () => {
      for (const prefix of prefixes) {
        for (const version of await this.#candidates(prefix, reference.version, signal)) {
          const found = await read(`${prefix}${version}`, doing);
          if (found !== undefined) return { version, ...found };
        }
      }
      throw notFound(key, reference.version);
    });
  }

  /** The versions that may be meant, the best one first. */
  async #candidates(
    prefix: string,
    version: number | undefined,
    signal: AbortSignal,
  ): Promise<readonly number[]> {
    if (version !== undefined)
      return Number.isSafeInteger(version) && version >= 0 ? [version] : [];
    return (await listVersions(this.#bucket, prefix, signal)).reverse().slice(0, maxLatest);
  }

  async #next(prefix: string, signal: AbortSignal): Promise<number> {
    return ((await listVersions(this.#bucket, prefix, signal)).at(-1) ?? -1) + 1;
  }

  #guarded<T>(doing: string, signal: AbortSignal, operation: () => Promise<T>): Promise<T> {
    return guarded(doing, signal, operation, (error) => this.#bucket.reasonOf(error));
  }
}

/** An artifact to save. */
interface NewArtifact {
  readonly key: ArtifactKey;
  readonly sessionId: string;
  readonly prefix: string;
  readonly mimeType: string;
}

function objectOf(
  layout: ObjectLayout,
  { key, sessionId, prefix, mimeType }: NewArtifact,
  { version, saveId }: SavedArtifact,
): NewObject {
  return {
    key: `${prefix}${version}`,
    contentType: contentTypeOf(mimeType),
    metadata: {
      ...layout.metadataOf(key, sessionId, version),
      ...saveMetadata(saveId),
      ...mimeTypeMetadata(mimeType),
    },
  };
}

/** Throws StoreError where the object is no content. */
function artifactFacts(
  { etag, sizeBytes, contentType, metadata, objection }: ObjectFacts,
  doing: string,
): Omit<ArtifactFacts, "version"> {
  if (objection !== undefined) throw new StoreError("unavailable", `${doing}: ${objection}.`);
  return { sizeBytes, etag, metadata: decodeMimeType(contentType, metadata) };
}
