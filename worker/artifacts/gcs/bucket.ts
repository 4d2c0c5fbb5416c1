/**
 * The requests of the JSON API that the store needs, in one bucket.
 */
import { randomUUID } from "node:crypto";
import type { Readable } from "node:stream";
import type { FileMetadata } from "@google-cloud/storage";
import type { GcsClient, GcsResponse } from "./client.ts";
import type { GcsStoreConfig } from "./config.ts";
import { GcsError } from "./failures.ts";

/** What a new object is. */
export interface NewObject {
  readonly name: string;
  readonly contentType: string;
  readonly metadata: Readonly<Record<string, string>>;
  /** Generation of the object that it replaces, 0 for none: status 412 for another one. */
  readonly replaces: string | undefined;
}

/** A page of a listing. */
export interface ObjectList {
  readonly items?: readonly FileMetadata[];
  readonly prefixes?: readonly string[];
  readonly nextPageToken?: string;
}

/** A bucket. Methods reject with GcsError and the signal's reason. The owner keeps the client. */
export class GcsBucket {
  readonly client: GcsClient;
  readonly #config: GcsStoreConfig;
  readonly #path: string;

  constructor(client: GcsClient, config: GcsStoreConfig) {
    this.client = client;
    this.#config = config;
    this.#path = `storage/v1/b/${encodeURIComponent(config.bucket)}/o`;
  }

  /** Facts about an object. */
  get(name: string, signal: AbortSignal): Promise<GcsResponse<FileMetadata>> {
    return this.client.request({ method: "GET", url: this.#urlOf(name) }, signal);
  }

  /** The content of the present generation of an object, with facts in the headers. */
  readLatest(name: string, signal: AbortSignal): Promise<GcsResponse<Readable>> {
    return this.#download(name, {}, {}, signal);
  }

  /** The content of one generation of an object, from a byte on. */
  async read(
    name: string,
    { generation, offset }: { readonly generation: string; readonly offset: number },
    signal: AbortSignal,
  ): Promise<Readable> {
    const range = offset > 0 ? { range: `bytes=${offset}-` } : {};
    const { status, data } = await this.#download(name, { generation }, range, signal);
    if (offset === 0 || status === 206) return data;
    data.destroy();
    throw new GcsError("the server ignores ranges", undefined, undefined);
  }

  /** One page, from a token on. */
  list(
    query: Readonly<Record<string, string>>,
    signal: AbortSignal,
  ): Promise<GcsResponse<ObjectList>> {
    return this.client.request({ method: "GET", url: this.#path, query }, signal);
  }

  /** Creates an object with its content; the server verifies the checksum. */
  async insert(
    object: NewObject,
    content: Buffer,
    crc32c: string,
    signal: AbortSignal,
  ): Promise<FileMetadata> {
    const boundary = `str-${randomUUID()}`;
    const facts = JSON.stringify({ ...this.#factsOf(object), crc32c });
    const head =
      `--${boundary}\r\ncontent-type: application/json; charset=utf-8\r\n\r\n${facts}\r\n` +
      `--${boundary}\r\ncontent-type: ${object.contentType}\r\n\r\n`;
    const { data } = await this.client.request<FileMetadata>(
      {
        method: "POST",
        url: `upload/${this.#path}`,
        query: this.#uploadQuery("multipart", object),
        headers: { "content-type": `multipart/related; boundary=${boundary}` },
        body: Buffer.concat([Buffer.from(head), content, Buffer.from(`\r\n--${boundary}--\r\n`)]),
      },
      signal,
    );
    return data;
  }

  /** Begins an upload in several requests. Resolves with its URL. */
  async startUpload(object: NewObject, sizeBytes: number, signal: AbortSignal): Promise<string> {
    const { headers } = await this.client.request(
      {
        method: "POST",
        url: `upload/${this.#path}`,
        query: this.#uploadQuery("resumable", object),
        headers: {
          "content-type": "application/json; charset=utf-8",
          "x-upload-content-type": object.contentType,
          "x-upload-content-length": String(sizeBytes),
        },
        body: Buffer.from(JSON.stringify(this.#factsOf(object))),
      },
      signal,
    );
    const url = headers.get("location");
    if (url === null) throw new GcsError("the server began no upload", undefined, undefined);
    return url;
  }

  /** Removes an object, where told only that generation of it. */
  async delete(
    name: string,
    signal: AbortSignal,
    generation?: string,
  ): Promise<GcsResponse<unknown>> {
    const query = generation === undefined ? {} : { ifGenerationMatch: generation };
    return this.client.request({ method: "DELETE", url: this.#urlOf(name), query }, signal);
  }

  #download(
    name: string,
    query: Readonly<Record<string, string>>,
    headers: Readonly<Record<string, string>>,
    signal: AbortSignal,
  ): Promise<GcsResponse<Readable>> {
    return this.client.request<Readable>(
      {
        ...{ method: "GET", url: this.#urlOf(name), answers: "stream" },
        query: { alt: "media", ...query },
        // As it is stored: the server would decompress what is compressed, and the size differ.
        headers: { "accept-encoding": "gzip", ...headers },
      },
      signal,
    );
  }

  #urlOf(name: string): string {
    return `${this.#path}/${encodeURIComponent(name)}`;
  }

  #uploadQuery(uploadType: string, { name, replaces }: NewObject): Record<string, string> {
    const { kmsKey } = this.#config;
    return {
      ...{ uploadType, name },
      ...(replaces !== undefined && { ifGenerationMatch: replaces }),
      ...(kmsKey !== undefined && { kmsKeyName: kmsKey }),
    };
  }

  #factsOf({ name, contentType, metadata }: NewObject): FileMetadata {
    const { storageClass } = this.#config;
    return { name, contentType, metadata, ...(storageClass !== undefined && { storageClass }) };
  }
}

/** Identifies the content that an object has. */
export function generationOf({ generation }: FileMetadata): string {
  return String(generation);
}
