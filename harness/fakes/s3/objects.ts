/**
 * What is in a bucket: objects, and uploads in parts that are not complete.
 */
import { createHash, randomUUID } from "node:crypto";
import { crc32Of } from "./body.ts";
import { S3Error } from "./errors.ts";

/** Bytes of each part but the last: "Amazon S3 multipart upload limits". */
const minPartBytes = 5 * 1024 * 1024;

/** Headers that come back as they were sent: content type, metadata, encryption, storage class. */
export type KeptHeaders = Readonly<Record<string, string>>;

/** A CRC-32 of the whole content, or of the checksums of its parts and then `xxxx-N`. */
export type ChecksumType = "FULL_OBJECT" | "COMPOSITE";

/** An object. It never changes; another one may take its place. */
export interface StoredObject {
  readonly content: Buffer;
  readonly etag: string;
  readonly checksum: string;
  readonly checksumType: ChecksumType;
  readonly headers: KeptHeaders;
  readonly modifiedMs: number;
}

/** Conditions of a request that writes. */
export interface Conditions {
  /** `*`: there is no object. */
  readonly ifNoneMatch: string | undefined;
  /** The ETag of the object that there is. */
  readonly ifMatch: string | undefined;
}

/** A part that a client names to complete an upload. */
export interface SaidPart {
  readonly number: number;
  readonly etag: string;
  readonly checksum: string | undefined;
}

interface Upload {
  readonly key: string;
  readonly headers: KeptHeaders;
  readonly checksumType: ChecksumType;
  readonly parts: Map<number, StoredObject>;
}

/** A bucket in memory. */
export class Bucket {
  readonly objects = new Map<string, StoredObject>();
  readonly uploads = new Map<string, Upload>();
  readonly #ignoresConditions: boolean;

  /** @param ignoresConditions as servers do that know none */
  constructor(ignoresConditions: boolean) {
    this.#ignoresConditions = ignoresConditions;
  }

  /** Throws S3Error `NoSuchKey`. */
  get(key: string): StoredObject {
    const object = this.objects.get(key);
    if (object === undefined) throw new S3Error(404, "NoSuchKey");
    return object;
  }

  /** Throws S3Error `PreconditionFailed`, and then leaves everything as it was. */
  put(key: string, content: Buffer, headers: KeptHeaders, conditions: Conditions): StoredObject {
    return this.#store(key, makeObject(content, headers), conditions);
  }

  /** Nothing happens where there is no object. */
  delete(key: string, conditions: Conditions): void {
    if (this.objects.has(key)) this.#require(key, conditions);
    this.objects.delete(key);
  }

  createUpload(key: string, headers: KeptHeaders, checksumType: ChecksumType): string {
    const id = randomUUID();
    this.uploads.set(id, { key, headers, checksumType, parts: new Map() });
    return id;
  }

  uploadPart(id: string, number: number, content: Buffer): StoredObject {
    const part = makeObject(content, {});
    this.#upload(id).parts.set(number, part);
    return part;
  }

  /**
   * Throws S3Error, and keeps the upload then.
   *
   * @param checksum that of the object, if the client sent one
   */
  completeUpload(
    id: string,
    said: readonly SaidPart[],
    checksum: string | undefined,
    conditions: Conditions,
  ): StoredObject {
    const { key, headers, checksumType, parts } = this.#upload(id);
    const contents = said.map(({ number, etag, checksum: ofPart }, index) => {
      const part = parts.get(number);
      if (part?.etag !== etag) throw new S3Error(400, "InvalidPart");
      if (ofPart !== undefined && ofPart !== part.checksum) throw new S3Error(400, "InvalidPart");
      const isLast = index === said.length - 1;
      if (!isLast && part.content.byteLength < minPartBytes)
        throw new S3Error(400, "EntityTooSmall");
      return part.content;
    });
    const digests = said.map(({ etag }) => Buffer.from(etag.replaceAll('"', ""), "hex"));
    const object = {
      ...makeObject(Buffer.concat(contents), headers),
      etag: `"${hash(Buffer.concat(digests))}-${said.length}"`,
      ...(checksumType === "COMPOSITE" && { checksum: compositeOf(contents), checksumType }),
    };
    if (checksum !== undefined && checksum !== object.checksum) throw new S3Error(400, "BadDigest");
    const stored = this.#store(key, object, conditions);
    this.uploads.delete(id);
    return stored;
  }

  abortUpload(id: string): void {
    this.#upload(id);
    this.uploads.delete(id);
  }

  #upload(id: string): Upload {
    const upload = this.uploads.get(id);
    if (upload === undefined) throw new S3Error(404, "NoSuchUpload");
    return upload;
  }

  #store(key: string, object: StoredObject, conditions: Conditions): StoredObject {
    this.#require(key, conditions);
    this.objects.set(key, object);
    return object;
  }

  #require(key: string, { ifNoneMatch, ifMatch }: Conditions): void {
    if (this.#ignoresConditions) return;
    const present = this.objects.get(key);
    if (ifMatch !== undefined && present === undefined) throw new S3Error(404, "NoSuchKey");
    const isRefused =
      (ifNoneMatch === "*" && present !== undefined) ||
      (ifMatch !== undefined && ifMatch !== present?.etag);
    if (isRefused) throw new S3Error(412, "PreconditionFailed");
  }
}

function makeObject(content: Buffer, headers: KeptHeaders): StoredObject {
  return {
    ...{ content, headers, etag: `"${hash(content)}"`, modifiedMs: Date.now() },
    ...{ checksum: crc32Of(content), checksumType: "FULL_OBJECT" },
  };
}

function compositeOf(parts: readonly Buffer[]): string {
  const checksums = parts.map((part) => Buffer.from(crc32Of(part), "base64"));
  return `${crc32Of(Buffer.concat(checksums))}-${parts.length}`;
}

function hash(content: Buffer): string {
  return createHash("md5").update(content).digest("hex");
}
