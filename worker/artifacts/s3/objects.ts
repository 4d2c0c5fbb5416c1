/**
 * A bucket of an S3 server.
 */
import {
  DeleteObjectCommand,
  GetObjectCommand,
  type GetObjectCommandOutput,
  HeadObjectCommand,
  ListObjectsV2Command,
  PutObjectCommand,
  type S3Client,
} from "@aws-sdk/client-s3";
import type {
  Condition,
  Listing,
  NewObject,
  ObjectBucket,
  ObjectFacts,
  OpenedObject,
  Page,
  SmallObject,
  Uploader,
} from "../objects/bucket.ts";
import { marksPrefix } from "../objects/marks.ts";
import type { UploadContent } from "../objects/parts.ts";
import { createClient, serverTimeOf } from "./client.ts";
import type { S3StoreConfig } from "./config.ts";
import {
  isConditionFailed,
  isMissing,
  isRefused,
  meaningOf,
  reasonOf,
  unlessMissing,
} from "./failures.ts";
import { layout } from "./layout.ts";
import { readObject } from "./reading.ts";
import { type PutFacts, createUploader, partBuffers } from "./upload.ts";

const withoutConditions =
  "it keeps no condition If-None-Match: versions are reserved by separate objects, which costs six requests more for each save of a small file and two for a large one, and workers have no marks in common";

/** See {@link ObjectBucket}. Errors are the SDK's. */
export class S3Objects implements ObjectBucket {
  readonly kind = "s3";
  readonly layout = layout;
  readonly partBuffers = partBuffers;
  readonly isConditional = false;
  readonly withoutConditions = { isUsable: true, why: withoutConditions };
  readonly reasonOf = reasonOf;
  readonly meaningOf = meaningOf;
  readonly #config: S3StoreConfig;
  readonly #client: S3Client;

  /** Makes no connection yet. */
  constructor(config: S3StoreConfig) {
    this.#config = config;
    this.#client = createClient(config);
  }

  async head(key: string, abortSignal: AbortSignal): Promise<ObjectFacts | undefined> {
    try {
      return factsOf(
        await this.#client.send(new HeadObjectCommand(this.#at(key)), { abortSignal }),
      );
    } catch (error) {
      // Its answer has no body to say why, be it a missing bucket; that of a list has one.
      if (isRefused(error)) await this.list({ prefix: marksPrefix, maxEntries: 1 }, abortSignal);
      if (isMissing(error)) return undefined;
      throw error;
    }
  }

  async open(
    key: string,
    doing: string,
    abortSignal: AbortSignal,
  ): Promise<OpenedObject | undefined> {
    const at = this.#at(key);
    const mode = this.#isVerified ? ({ ChecksumMode: "ENABLED" } as const) : {};
    const get = new GetObjectCommand({ ...at, ...mode });
    const response = await unlessMissing(() => this.#client.send(get, { abortSignal }));
    if (response === undefined) return undefined;
    const facts = factsOf(response);
    const { sizeBytes } = facts;
    const opened = { client: this.#client, ...at, sizeBytes, response, doing };
    return { ...facts, body: readObject(opened) };
  }

  async read(key: string, abortSignal: AbortSignal): Promise<SmallObject | undefined> {
    const get = new GetObjectCommand(this.#at(key));
    return unlessMissing(async () => {
      const output = await this.#client.send(get, { abortSignal });
      const content = (await output.Body?.transformToByteArray()) ?? new Uint8Array();
      return { content, etag: output.ETag ?? "", ageMs: ageMs(output, output.LastModified) };
    });
  }

  async list(
    { prefix, isDeep = false, maxEntries, from }: Listing,
    abortSignal: AbortSignal,
  ): Promise<Page> {
    const list = new ListObjectsV2Command({
      Bucket: this.#config.bucket,
      Prefix: prefix,
      // Names may have characters that XML has not.
      EncodingType: "url",
      ...(!isDeep && { Delimiter: "/" }),
      ...(maxEntries !== undefined && { MaxKeys: maxEntries }),
      ...(from !== undefined && { ContinuationToken: from }),
    });
    const output = await this.#client.send(list, { abortSignal });
    const { Contents = [], CommonPrefixes = [], NextContinuationToken } = output;
    // Some servers ignore the wish, and say so.
    const shown = output.EncodingType === "url" ? decoded : (key: string) => key;
    return {
      objects: Contents.map(({ Key = "", ETag = "", LastModified }) => ({
        ...{ key: shown(Key), etag: ETag },
        ageMs: ageMs(output, LastModified),
      })),
      prefixes: CommonPrefixes.map(({ Prefix = "" }) => shown(Prefix)),
      next: NextContinuationToken,
    };
  }

  async write(
    { key, contentType, metadata }: NewObject,
    content: Buffer,
    condition: Condition | undefined,
    abortSignal: AbortSignal,
  ): Promise<string> {
    const put = new PutObjectCommand({
      ...this.#at(key),
      ...{ Body: content, ContentType: contentType, Metadata: metadata },
      ...(condition === "absent" && { IfNoneMatch: "*" }),
      ...(typeof condition === "object" && { IfMatch: condition.etag }),
    });
    const { ETag = "" } = await this.#client.send(put, { abortSignal });
    return ETag;
  }

  upload(content: UploadContent, isConditional: boolean, signal: AbortSignal): Uploader {
    const how = { client: this.#client, isVerified: this.#isVerified, isConditional };
    const uploader = createUploader({ ...content, ...how }, signal);
    return {
      isInParts: uploader.isInParts,
      ready: uploader.ready,
      put: (object) => uploader.put(this.#factsOf(object)),
      [Symbol.dispose]: () => uploader[Symbol.dispose](),
    };
  }

  async delete(key: string, etag: string | undefined, abortSignal: AbortSignal): Promise<boolean> {
    const condition = etag === undefined ? {} : { IfMatch: etag };
    const remove = new DeleteObjectCommand({ ...this.#at(key), ...condition });
    try {
      await this.#client.send(remove, { abortSignal });
      return true;
    } catch (error) {
      if (isMissing(error) || isConditionFailed(error)) return false;
      throw error;
    }
  }

  [Symbol.dispose](): void {
    this.#client.destroy();
  }

  get #isVerified(): boolean {
    return this.#config.checksums === "supported";
  }

  #at(key: string): { readonly Bucket: string; readonly Key: string } {
    return { Bucket: this.#config.bucket, Key: key };
  }

  #factsOf({ key, contentType, metadata }: NewObject): PutFacts {
    const { storageClass } = this.#config;
    return {
      ...this.#at(key),
      ...{ ContentType: contentType, Metadata: metadata },
      ...(storageClass !== undefined && {
        StorageClass: storageClass as NonNullable<PutFacts["StorageClass"]>,
      }),
    };
  }
}

function factsOf({
  ETag = "",
  ContentLength = 0,
  ContentType,
  Metadata = {},
}: Pick<
  GetObjectCommandOutput,
  "ContentLength" | "ContentType" | "ETag" | "Metadata"
>): ObjectFacts {
  return { etag: ETag, sizeBytes: ContentLength, contentType: ContentType, metadata: Metadata };
}

/** By the server's clock; NaN where it does not tell. */
function ageMs(output: { readonly $metadata: unknown }, changed: Date | undefined): number {
  return serverTimeOf(output) - (changed?.getTime() ?? NaN);
}

/** Keys are encoded as in forms. */
function decoded(key: string): string {
  return decodeURIComponent(key.replaceAll("+", " "));
}
