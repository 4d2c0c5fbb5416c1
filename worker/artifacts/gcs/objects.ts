/**
 * A bucket of Google Cloud Storage, or of a server that speaks its API.
 */
import { buffer } from "node:stream/consumers";
import type { FileMetadata } from "@google-cloud/storage";
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
import type { UploadContent } from "../objects/parts.ts";
import { GcsBucket, generationOf } from "./bucket.ts";
import { Checksum } from "./checksum.ts";
import { GcsClient } from "./client.ts";
import type { GcsStoreConfig } from "./config.ts";
import { isConditionFailed, meaningOf, reasonOf, unlessMissing } from "./failures.ts";
import { layout } from "./layout.ts";
import { openObject } from "./reading.ts";
import { createUploader, partBuffers } from "./upload.ts";

/** Keys of metadata by which agents save the address of content instead of the content. */
const addressKeys = ["adkFileUri", "file_uri"];

/** See {@link ObjectBucket}. Errors are GcsError; the ETag of an object is its generation. */
export class GcsObjects implements ObjectBucket {
  readonly kind = "gcs";
  readonly layout = layout;
  readonly partBuffers = partBuffers;
  readonly isConditional: boolean;
  readonly withoutConditions = {
    isUsable: false,
    why: "it ignores ifGenerationMatch, so that savers would overwrite each other",
  };
  readonly reasonOf = reasonOf;
  readonly meaningOf = meaningOf;
  readonly #client: GcsClient;
  readonly #bucket: GcsBucket;

  /** Makes no connection yet. */
  constructor(config: GcsStoreConfig) {
    this.#client = new GcsClient(config);
    this.#bucket = new GcsBucket(this.#client, config);
    this.isConditional = config.endpoint === undefined;
  }

  async head(key: string, signal: AbortSignal): Promise<ObjectFacts | undefined> {
    const found = await unlessMissing(() => this.#bucket.get(key, signal));
    return found && factsOf(found.data);
  }

  async open(key: string, doing: string, signal: AbortSignal): Promise<OpenedObject | undefined> {
    const opened = await unlessMissing(() => openObject(this.#bucket, key, doing, signal));
    return opened && { ...factsOf(opened.object), body: opened.body };
  }

  async read(key: string, signal: AbortSignal): Promise<SmallObject | undefined> {
    return unlessMissing(async () => {
      const { data, headers } = await this.#bucket.get(key, signal);
      const generation = generationOf(data);
      const body = await this.#bucket.read(key, { generation, offset: 0 }, signal);
      return { content: await buffer(body), etag: generation, ageMs: ageMs(headers, data) };
    });
  }

  async list(
    { prefix, isDeep = false, maxEntries, from }: Listing,
    signal: AbortSignal,
  ): Promise<Page> {
    const { data, headers } = await this.#bucket.list(
      {
        prefix,
        fields: "items(name,generation,updated),prefixes,nextPageToken",
        ...(!isDeep && { delimiter: "/" }),
        ...(maxEntries !== undefined && { maxResults: String(maxEntries) }),
        ...(from !== undefined && { pageToken: from }),
      },
      signal,
    );
    const { items = [], prefixes = [], nextPageToken } = data;
    return {
      objects: items.map((item) => ({
        ...{ key: item.name ?? "", etag: generationOf(item) },
        ageMs: ageMs(headers, item),
      })),
      prefixes,
      next: nextPageToken,
    };
  }

  async write(
    { key, ...facts }: NewObject,
    content: Buffer,
    condition: Condition | undefined,
    signal: AbortSignal,
  ): Promise<string> {
    const replaces = condition === "absent" ? "0" : condition?.etag;
    const object = { name: key, ...facts, replaces };
    const checksum = new Checksum();
    checksum.update(content);
    return generationOf(await this.#bucket.insert(object, content, checksum.value, signal));
  }

  upload(content: UploadContent, isExclusive: boolean, signal: AbortSignal): Uploader {
    const uploader = createUploader({ bucket: this.#bucket, ...content }, signal);
    const replaces = isExclusive ? "0" : undefined;
    return {
      isInParts: uploader.isInParts,
      ready: uploader.ready,
      put: async ({ key, ...facts }) =>
        void (await uploader.put({ name: key, ...facts, replaces })),
      [Symbol.dispose]: () => uploader[Symbol.dispose](),
    };
  }

  async delete(key: string, etag: string | undefined, signal: AbortSignal): Promise<boolean> {
    try {
      const deleted = await unlessMissing(() => this.#bucket.delete(key, signal, etag));
      return deleted !== undefined;
    } catch (error) {
      if (isConditionFailed(error)) return false;
      throw error;
    }
  }

  [Symbol.dispose](): void {
    this.#client[Symbol.dispose]();
  }
}

function factsOf(object: FileMetadata): ObjectFacts {
  const { size, contentType, metadata = {} } = object;
  const isAddress = addressKeys.some((key) => typeof metadata[key] === "string");
  return {
    ...{ etag: generationOf(object), sizeBytes: Number(size), contentType, metadata },
    ...(isAddress && { objection: "an agent saved an address there, and no content" }),
  };
}

/** By the server's clock; NaN where it does not tell. */
function ageMs(headers: Headers, { updated = "" }: FileMetadata): number {
  return Date.parse(headers.get("date") ?? "") - Date.parse(updated);
}
