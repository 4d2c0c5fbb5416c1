/**
 * Artifacts as objects of a bucket of Google Cloud Storage, in the layout that agents share.
 */
import { randomUUID } from "node:crypto";
import type { FileMetadata } from "@google-cloud/storage";
import type { ArtifactReference } from "../../protocol/invocation.ts";
import { artifactTitle, notFound, notSaved } from "../failures.ts";
import { namesNotListed } from "../names.ts";
import { contentTypeOf, mimeTypeMetadata } from "../objects/content-type.ts";
import { PartBuffers } from "../objects/part-buffers.ts";
import { isOfSave, saveMetadata } from "../objects/saves.ts";
import { artifactKey } from "../scope.ts";
import { StoreError } from "../store.ts";
import type {
  ArtifactFacts,
  ArtifactMetadata,
  ArtifactScope,
  ArtifactSource,
  ArtifactStore,
  OpenedArtifact,
  SavedArtifact,
} from "../store.ts";
import { GcsBucket, type NewObject, generationOf } from "./bucket.ts";
import { GcsClient } from "./client.ts";
import type { GcsStoreConfig } from "./config.ts";
import {
  guardedRequest,
  isConditionFailed,
  isMissing,
  isRefused,
  isUploadGone,
  unlessMissing,
} from "./failures.ts";
import { prefixOf, prefixesOf } from "./keys.ts";
import { GcsMarks } from "./marks.ts";
import { factsOf } from "./metadata.ts";
import { keepsConditions } from "./probe.ts";
import { openObject } from "./reading.ts";
import { type Uploader, createUploader, partBuffers } from "./upload.ts";
import { listNames, listVersions } from "./versions.ts";

/** Versions that one save tries, each taken by somebody else. */
const maxTries = 200;

/** Attempts at one version while others come and go. */
const maxConflicts = 10;

/** Milliseconds to find out what became of a save whose answer was lost. */
const outcomeTimeoutMs = 5_000;

/** Latest versions that an opening tries, each deleted since the listing. */
const maxLatest = 5;

const unusable = "The artifact store cannot be used";

/** Creates a store without access to it. The caller disposes it. */
export function createGcsStore(config: GcsStoreConfig): ArtifactStore {
  return new GcsStore(config);
}

class GcsStore implements ArtifactStore {
  readonly kind = "gcs";
  readonly marks: GcsMarks;
  readonly #client: GcsClient;
  readonly #bucket: GcsBucket;
  readonly #buffers = new PartBuffers(partBuffers);
  /** Whether the server is known to keep conditions, as Google's does. */
  #isConditional: boolean;

  constructor(config: GcsStoreConfig) {
    this.#client = new GcsClient(config);
    this.#bucket = new GcsBucket(this.#client, config);
    this.#isConditional = config.endpoint === undefined;
    this.marks = new GcsMarks(this.#bucket);
  }

  async open(
    scope: ArtifactScope,
    reference: ArtifactReference,
    signal: AbortSignal,
  ): Promise<OpenedArtifact> {
    return this.#find(scope, reference, signal, async (name, doing) => {
      const opened = await unlessMissing(() => openObject(this.#bucket, name, doing, signal));
      if (opened === undefined) return undefined;
      const { object, body } = opened;
      try {
        return { ...factsOf(object, doing), body };
      } catch (error) {
        body.destroy();
        throw error;
      }
    });
  }

  async stat(
    scope: ArtifactScope,
    reference: ArtifactReference,
    signal: AbortSignal,
  ): Promise<ArtifactFacts> {
    return this.#find(scope, reference, signal, async (name, doing) => {
      const object = await this.#get(name, signal);
      return object && factsOf(object, doing);
    });
  }

  async save(
    scope: ArtifactScope,
    filename: string,
    source: ArtifactSource,
    metadata: ArtifactMetadata,
    signal: AbortSignal,
  ): Promise<SavedArtifact> {
    const key = artifactKey(scope, filename);
    const prefix = prefixOf(key);
    const { mimeType } = metadata;
    return guardedRequest(`${artifactTitle(key)} could not be saved`, signal, async () => {
      const upload = { bucket: this.#bucket, source, key, buffers: this.#buffers };
      using uploader = createUploader(upload, signal);
      const save = randomUUID();
      const facts = {
        contentType: contentTypeOf(mimeType),
        metadata: { ...saveMetadata(save), ...mimeTypeMetadata(mimeType) },
        replaces: "0",
      };
      let version = await this.#next(prefix, signal);
      for (let tries = 0; tries < maxTries; tries++) {
        const object = { ...facts, name: `${prefix}${version}` };
        const stored = await this.#claim(object, save, uploader, signal);
        if (stored !== undefined)
          return { version, sizeBytes: source.sizeBytes, etag: generationOf(stored) };
        version++;
      }
      throw notSaved(key, "others keep taking its versions");
    });
  }

  async deleteVersion(
    scope: ArtifactScope,
    filename: string,
    { version, etag }: SavedArtifact,
    signal: AbortSignal,
  ): Promise<boolean> {
    const key = artifactKey(scope, filename);
    const name = `${prefixOf(key)}${version}`;
    const doing = `${artifactTitle(key, version)} could not be deleted`;
    return guardedRequest(doing, signal, async () => {
      const found = await this.#get(name, signal);
      if (found === undefined || generationOf(found) !== etag) return false;
      try {
        await this.#bucket.delete(name, signal, etag);
        return true;
      } catch (error) {
        if (isMissing(error) || isConditionFailed(error)) return false;
        throw error;
      }
    });
  }

  async names(scope: ArtifactScope, signal: AbortSignal): Promise<readonly string[]> {
    return guardedRequest(namesNotListed(scope), signal, () =>
      listNames(this.#bucket, scope, signal),
    );
  }

  async versions(
    scope: ArtifactScope,
    filename: string,
    signal: AbortSignal,
  ): Promise<readonly number[]> {
    const key = artifactKey(scope, filename);
    return guardedRequest(`${artifactTitle(key)} could not be listed`, signal, async () => {
      for (const prefix of prefixesOf(key, filename)) {
        const versions = await listVersions(this.#bucket, prefix, signal);
        if (versions.length > 0) return versions;
      }
      return [];
    });
  }

  /** Lists, and tries the first time whether a server other than Google's keeps conditions. */
  async check(signal: AbortSignal): Promise<readonly string[]> {
    return guardedRequest(unusable, signal, async () => {
      await this.#bucket.list({ maxResults: "1", fields: "nextPageToken" }, signal);
      this.#isConditional ||= await keepsConditions(this.#bucket, signal);
      if (this.#isConditional) return [];
      const why = "it ignores ifGenerationMatch, so that savers would overwrite each other";
      throw new StoreError("unavailable", `${unusable}: ${why}.`);
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#client[Symbol.dispose]();
  }

  /** The first object among those that the reference may mean. Rejects as `open` does. */
  async #find<T>(
    scope: ArtifactScope,
    reference: ArtifactReference,
    signal: AbortSignal,
    read: (name: string, doing: string) => Promise<T | undefined>,
  ): Promise<T & { readonly version: number }> {
    const key = artifactKey(scope, reference.filename);
    const doing = `${artifactTitle(key)} could not be opened`;
    return guardedRequest(doing, signal, async () => {
      for (const prefix of prefixesOf(key, reference.filename)) {
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

  async #get(name: string, signal: AbortSignal): Promise<FileMetadata | undefined> {
    return (await unlessMissing(() => this.#bucket.get(name, signal)))?.data;
  }

  /** The object, if the name is this save's now. A repeated request may find its own object. */
  async #claim(
    object: NewObject,
    save: string,
    uploader: Uploader,
    signal: AbortSignal,
  ): Promise<FileMetadata | undefined> {
    for (let conflicts = 0; conflicts < maxConflicts; conflicts++) {
      try {
        return await uploader.put(object);
      } catch (error) {
        if (!isConditionFailed(error) && !isUploadGone(error)) {
          const stored = await this.#stored(object.name, save, error);
          if (stored !== undefined) return stored;
          throw error;
        }
        const found = await this.#get(object.name, signal);
        if (found !== undefined) return isOfSave(found.metadata, save) ? found : undefined;
      }
    }
    return undefined;
  }

  /** The object of a save whose answer was lost, also after an abort. */
  async #stored(name: string, save: string, error: unknown): Promise<FileMetadata | undefined> {
    if (isRefused(error)) return undefined;
    const signal = AbortSignal.timeout(outcomeTimeoutMs);
    const found = await this.#get(name, signal).catch(() => undefined);
    return isOfSave(found?.metadata, save) ? found : undefined;
  }
}
