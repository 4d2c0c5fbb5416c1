/**
 * Artifacts as objects of an S3 bucket, in the layout that agents share.
 */
import { randomInt, randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { DeleteObjectCommand, ListObjectsV2Command, type S3Client } from "@aws-sdk/client-s3";
import type { ArtifactReference } from "../../protocol/invocation.ts";
import { artifactTitle, notFound, notSaved } from "../failures.ts";
import type { MarkStore } from "../marks.ts";
import { namesNotListed } from "../names.ts";
import { contentTypeOf } from "../objects/content-type.ts";
import { isOfSave } from "../objects/saves.ts";
import { PartBuffers } from "../objects/part-buffers.ts";
import { artifactKey } from "../scope.ts";
import type {
  ArtifactFacts,
  ArtifactMetadata,
  ArtifactScope,
  ArtifactSource,
  ArtifactStore,
  OpenedArtifact,
  SavedArtifact,
} from "../store.ts";
import { createClient } from "./client.ts";
import type { S3StoreConfig } from "./config.ts";
import {
  guardedRequest,
  isConditionFailed,
  isConflict,
  isMissing,
  isRefused,
  isUploadGone,
} from "./failures.ts";
import { prefixOf } from "./keys.ts";
import { S3Marks } from "./marks.ts";
import { encodeMetadata } from "./metadata.ts";
import { type Bucket, factsOf, headObject, openObject } from "./objects.ts";
import { keepsConditions } from "./probe.ts";
import { Reservations } from "./reservations.ts";
import { type ObjectFacts, type Uploader, createUploader, partBuffers } from "./upload.ts";
import { listNames, listVersions } from "./versions.ts";

/** Versions that one save tries, each taken by somebody else. */
const maxTries = 200;

/** Attempts at one version while others come and go. */
const maxConflicts = 10;

/** Longest wait before another attempt, in milliseconds. */
const conflictWaitMs = 100;

/** Milliseconds to find out what became of a save whose answer was lost. */
const outcomeTimeoutMs = 5_000;

/** Latest versions that an opening tries, each deleted since the listing. */
const maxLatest = 5;

const withoutConditions =
  "it keeps no condition If-None-Match: versions are reserved by objects of their own, which costs four requests more for each save, and workers have no marks in common";

/** Creates a store without access to it. The caller disposes it. */
export function createS3Store(config: S3StoreConfig): ArtifactStore {
  return new S3Store(config, createClient(config));
}

class S3Store implements ArtifactStore {
  readonly kind = "s3";
  readonly #marks: MarkStore;
  readonly #config: S3StoreConfig;
  readonly #client: S3Client;
  readonly #reservations: Reservations;
  readonly #bucket: Bucket;
  readonly #buffers = new PartBuffers(partBuffers);
  /** Whether the server keeps conditions, once it was asked. */
  #isConditional: boolean | undefined;

  constructor(config: S3StoreConfig, client: S3Client) {
    this.#config = config;
    this.#client = client;
    this.#marks = new S3Marks(client, config.bucket);
    this.#bucket = { client, Bucket: config.bucket, checksums: config.checksums };
    this.#reservations = new Reservations(client, config.bucket);
  }

  get marks(): MarkStore | undefined {
    return this.#isConditional === false ? undefined : this.#marks;
  }

  async open(
    scope: ArtifactScope,
    reference: ArtifactReference,
    signal: AbortSignal,
  ): Promise<OpenedArtifact> {
    return this.#find(scope, reference, signal, (Key, doing) =>
      openObject(this.#bucket, Key, doing, signal),
    );
  }

  async stat(
    scope: ArtifactScope,
    reference: ArtifactReference,
    signal: AbortSignal,
  ): Promise<ArtifactFacts> {
    return this.#find(scope, reference, signal, async (Key) => {
      const head = await headObject(this.#bucket, Key, signal);
      return head === undefined ? undefined : factsOf(head);
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
    const { sessionId } = scope;
    return guardedRequest(`${artifactTitle(key)} could not be saved`, signal, async () => {
      const isVerified = this.#config.checksums === "supported";
      const isConditional = this.#isConditional !== false;
      const content = { source, key, buffers: this.#buffers };
      const upload = { client: this.#client, ...content, isVerified, isConditional };
      using uploader = createUploader(upload, signal);
      const etag = randomUUID();
      let version = await this.#next(prefix, signal);
      for (let tries = 0; tries < maxTries; tries++) {
        const facts = {
          ...this.#facts(`${prefix}${version}`, metadata),
          Metadata: encodeMetadata({ key, sessionId, version, save: etag }, metadata),
        };
        const isOwn = await (isConditional
          ? this.#claim(facts, etag, uploader, signal)
          : this.#claimReserved(facts, etag, uploader, signal));
        if (isOwn) return { version, sizeBytes: source.sizeBytes, etag };
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
    const Key = `${prefixOf(key)}${version}`;
    const doing = `${artifactTitle(key, version)} could not be deleted`;
    return guardedRequest(doing, signal, async () => {
      const head = await headObject(this.#bucket, Key, signal);
      if (head === undefined || !isOfSave(head.Metadata, etag)) return false;
      const { bucket: Bucket } = this.#config;
      const condition = this.#isConditional === false ? {} : { IfMatch: head.ETag };
      const remove = new DeleteObjectCommand({ Bucket, Key, ...condition });
      try {
        await this.#client.send(remove, { abortSignal: signal });
        return true;
      } catch (error) {
        if (isMissing(error) || isConditionFailed(error)) return false;
        throw error;
      }
    });
  }

  async names(scope: ArtifactScope, signal: AbortSignal): Promise<readonly string[]> {
    return guardedRequest(namesNotListed(scope), signal, () =>
      listNames(this.#client, this.#config.bucket, scope, signal),
    );
  }

  async versions(
    scope: ArtifactScope,
    filename: string,
    signal: AbortSignal,
  ): Promise<readonly number[]> {
    const key = artifactKey(scope, filename);
    const prefix = prefixOf(key);
    return guardedRequest(`${artifactTitle(key)} could not be listed`, signal, () =>
      this.#versions(prefix, signal),
    );
  }

  /** Lists, and tries the first time whether a key can be taken once only. */
  async check(signal: AbortSignal): Promise<readonly string[]> {
    return guardedRequest("The artifact store cannot be used", signal, async () => {
      const { bucket: Bucket } = this.#config;
      const list = new ListObjectsV2Command({ Bucket, MaxKeys: 1 });
      await this.#client.send(list, { abortSignal: signal });
      this.#isConditional ??= await keepsConditions(this.#client, Bucket, signal);
      return this.#isConditional ? [] : [withoutConditions];
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#client.destroy();
  }

  /** The first version among those that the reference may mean. Rejects as `open` does. */
  async #find<T>(
    scope: ArtifactScope,
    reference: ArtifactReference,
    signal: AbortSignal,
    read: (Key: string, doing: string) => Promise<T | undefined>,
  ): Promise<T & { readonly version: number }> {
    const key = artifactKey(scope, reference.filename);
    const prefix = prefixOf(key);
    const doing = `${artifactTitle(key)} could not be opened`;
    return guardedRequest(doing, signal, async () => {
      const candidates =
        reference.version === undefined
          ? (await this.#versions(prefix, signal)).reverse().slice(0, maxLatest)
          : [reference.version].filter((version) => Number.isSafeInteger(version) && version >= 0);
      for (const version of candidates) {
        const found = await read(`${prefix}${version}`, doing);
        if (found !== undefined) return { version, ...found };
      }
      throw notFound(key, reference.version);
    });
  }

  #versions(prefix: string, signal: AbortSignal): Promise<number[]> {
    return listVersions(this.#client, this.#config.bucket, prefix, signal);
  }

  async #next(prefix: string, signal: AbortSignal): Promise<number> {
    return ((await this.#versions(prefix, signal)).at(-1) ?? -1) + 1;
  }

  #facts(Key: string, { mimeType }: ArtifactMetadata): ObjectFacts {
    const { bucket: Bucket, storageClass } = this.#config;
    return {
      Bucket,
      Key,
      ContentType: contentTypeOf(mimeType),
      ...(storageClass !== undefined && {
        StorageClass: storageClass as NonNullable<ObjectFacts["StorageClass"]>,
      }),
    };
  }

  /** Whether the key is this save's now. A request that was repeated may find its own object. */
  async #claim(
    facts: ObjectFacts,
    etag: string,
    uploader: Uploader,
    signal: AbortSignal,
  ): Promise<boolean> {
    for (let conflicts = 0; conflicts < maxConflicts; conflicts++) {
      try {
        await uploader.put(facts);
        return true;
      } catch (error) {
        if (isConflict(error)) {
          await sleep(randomInt(conflictWaitMs), undefined, { signal });
          continue;
        }
        if (!isConditionFailed(error) && !isUploadGone(error)) {
          if (await this.#isStored(facts.Key, etag, error)) return true;
          throw error;
        }
        const head = await headObject(this.#bucket, facts.Key, signal);
        if (head !== undefined) return isOfSave(head.Metadata, etag);
      }
    }
    return false;
  }

  /** Whether a save is complete whose answer was lost, also after an abort. */
  async #isStored(Key: string, etag: string, error: unknown): Promise<boolean> {
    if (isRefused(error)) return false;
    const signal = AbortSignal.timeout(outcomeTimeoutMs);
    const head = await headObject(this.#bucket, Key, signal).catch(() => undefined);
    return head !== undefined && isOfSave(head.Metadata, etag);
  }

  /** The same where the server keeps no conditions. */
  async #claimReserved(
    facts: ObjectFacts,
    etag: string,
    uploader: Uploader,
    signal: AbortSignal,
  ): Promise<boolean> {
    const reservation = await this.#reservations.reserve(facts.Key, signal);
    if (reservation === undefined) return false;
    const isTaken = (await headObject(this.#bucket, facts.Key, signal)) !== undefined;
    // A failed one may still arrive, and would replace what another saver wrote: it keeps the key.
    if (!isTaken) await uploader.put(facts);
    const head = await headObject(this.#bucket, facts.Key, signal);
    await reservation.release(signal);
    return head !== undefined && isOfSave(head.Metadata, etag);
  }
}
