/**
 * A bucket of a server that this project did not write, for the suites of the stores.
 */
import {
  AbortMultipartUploadCommand,
  CreateBucketCommand,
  DeleteObjectCommand,
  ListMultipartUploadsCommand,
  ListObjectsV2Command,
  type MultipartUpload,
  PutObjectCommand,
  S3Client,
} from "@aws-sdk/client-s3";
import type { MarkStore } from "../../../worker/artifacts/marks.ts";
import type { S3StoreConfig } from "../../../worker/artifacts/s3/config.ts";
import type { ArtifactStore } from "../../../worker/artifacts/store.ts";
import { type SeededVersion, keyOf } from "../../conformance/artifacts/object-store/seeded.ts";
import { s3StoreOf } from "../s3.ts";

/** Requests at the same time. */
const parallel = 16;

/** Runs an operation for each item, some at a time. */
async function forEach<T>(items: Iterable<T>, operation: (item: T) => Promise<unknown>) {
  const queue = Iterator.from(items);
  const work = async (): Promise<void> => {
    for (const item of queue) await operation(item);
  };
  await Promise.all(Array.from({ length: parallel }, work));
}

/** A bucket with its account's own access. */
export class S3Bucket implements Disposable {
  readonly client: S3Client;
  readonly #config: Partial<S3StoreConfig>;
  readonly #name: string;

  constructor(name: string, config: Partial<S3StoreConfig>) {
    const { endpoint, region = "us-east-1", credentials, isPathStyle = true } = config;
    this.#name = name;
    this.#config = config;
    this.client = new S3Client({
      region,
      forcePathStyle: isPathStyle,
      ...(endpoint !== undefined && { endpoint }),
      ...(credentials !== undefined && { credentials }),
    });
  }

  async create(): Promise<void> {
    await this.client.send(new CreateBucketCommand({ Bucket: this.#name }));
  }

  store(changes: Partial<S3StoreConfig> = {}): ArtifactStore {
    return s3StoreOf({ bucket: this.#name, ...this.#config, ...changes });
  }

  /** A store that knows whether the server keeps conditions, as that of a worker. */
  async checkedStore(changes: Partial<S3StoreConfig> = {}): Promise<ArtifactStore> {
    const store = this.store(changes);
    await store.check(new AbortController().signal);
    return store;
  }

  twoViewsOfMarks(): readonly [MarkStore, MarkStore] {
    const view = (): MarkStore => this.store().marks!;
    return [view(), view()];
  }

  async seed(versions: readonly SeededVersion[]): Promise<void> {
    await forEach(versions, ({ content: Body, ...version }) =>
      this.client.send(new PutObjectCommand({ Bucket: this.#name, Key: keyOf(version), Body })),
    );
  }

  /** Keys, of one page at most. */
  async keys(Prefix = ""): Promise<readonly string[]> {
    const list = new ListObjectsV2Command({ Bucket: this.#name, Prefix });
    const { Contents = [] } = await this.client.send(list);
    return Contents.map(({ Key = "" }) => Key);
  }

  /** Unfinished uploads, of one page at most. */
  async uploads(): Promise<readonly MultipartUpload[]> {
    const list = new ListMultipartUploadsCommand({ Bucket: this.#name });
    const { Uploads = [] } = await this.client.send(list);
    return Uploads;
  }

  /** Removes the objects that begin so, and all unfinished uploads. */
  async clear(prefix = ""): Promise<void> {
    const Bucket = this.#name;
    for (let keys = await this.keys(prefix); keys.length > 0; keys = await this.keys(prefix))
      await forEach(keys, (Key) => this.client.send(new DeleteObjectCommand({ Bucket, Key })));
    await forEach(await this.uploads(), ({ Key, UploadId }) =>
      this.client.send(new AbortMultipartUploadCommand({ Bucket, Key, UploadId })),
    );
  }

  [Symbol.dispose](): void {
    this.client.destroy();
  }
}
