/**
 * What each operation does with a bucket, and its answer.
 */
import { contentOf } from "./body.ts";
import { S3Error, escapeXml } from "./errors.ts";
import { listObjects } from "./listing.ts";
import type { Bucket, Conditions, KeptHeaders, StoredObject } from "./objects.ts";
import type { S3Operation, S3Request } from "./request.ts";

/** An answer to send. */
export interface S3Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
}

const keptHeaders =
  /^(?:content-type|x-amz-meta-.+|x-amz-server-side-encryption.*|x-amz-storage-class)$/;

/** Does what a request asks for. Throws S3Error, and then leaves everything as it was. */
export function perform(
  request: S3Request,
  bucket: Bucket,
  body: Buffer,
  names: readonly string[],
): S3Answer {
  const kept = (): KeptHeaders =>
    Object.fromEntries(
      names
        .filter((name) => keptHeaders.test(name))
        .map((name) => [name, request.header(name) ?? ""]),
    );
  const { key, query } = request;
  const id = query.get("uploadId") ?? "";
  const operations: Readonly<Record<S3Operation, () => S3Answer>> = {
    HeadBucket: () => answer(200),
    ListObjectsV2: () => xml(listObjects(bucket, query)),
    HeadObject: () => read(request, bucket.get(key)),
    GetObject: () => read(request, bucket.get(key)),
    PutObject: () =>
      written(bucket.put(key, contentOf(request, body), kept(), conditions(request))),
    DeleteObject: () => {
      bucket.delete(key, conditions(request));
      return answer(204);
    },
    CreateMultipartUpload: () => {
      // That of the parts is the default of a client that names an algorithm and no type.
      const isComposite =
        request.header("x-amz-checksum-algorithm") !== undefined &&
        request.header("x-amz-checksum-type") !== "FULL_OBJECT";
      const type = isComposite ? "COMPOSITE" : "FULL_OBJECT";
      const created = bucket.createUpload(key, kept(), type);
      const names = `<Bucket>${request.bucket}</Bucket><Key>${escapeXml(key)}</Key>`;
      return xml(
        `<InitiateMultipartUploadResult>${names}<UploadId>${created}</UploadId></InitiateMultipartUploadResult>`,
      );
    },
    UploadPart: () => {
      const number = Number(query.get("partNumber"));
      return written(bucket.uploadPart(id, number, contentOf(request, body)));
    },
    CompleteMultipartUpload: () => complete(request, bucket, id, body.toString()),
    AbortMultipartUpload: () => {
      bucket.abortUpload(id);
      return answer(204);
    },
  };
  return operations[request.operation]();
}

function complete(request: S3Request, bucket: Bucket, id: string, list: string): S3Answer {
  const parts = [...list.matchAll(/<Part>(.*?)<\/Part>/gs)].map(([, part = ""]) => ({
    number: Number(/<PartNumber>(\d+)</.exec(part)?.[1]),
    etag: (/<ETag>(.*?)</.exec(part)?.[1] ?? "").replaceAll("&quot;", '"'),
    checksum: /<ChecksumCRC32>(.*?)</.exec(part)?.[1],
  }));
  if (parts.length === 0) throw new S3Error(400, "MalformedXML");
  const said = request.header("x-amz-checksum-crc32");
  const { etag } = bucket.completeUpload(id, parts, said, conditions(request));
  const result = `<Key>${escapeXml(request.key)}</Key><ETag>${escapeXml(etag)}</ETag>`;
  return xml(`<CompleteMultipartUploadResult>${result}</CompleteMultipartUploadResult>`);
}

function read(request: S3Request, object: StoredObject): S3Answer {
  const { content, etag, headers, modifiedMs } = object;
  const ifMatch = request.header("if-match");
  if (ifMatch !== undefined && ifMatch !== etag) throw new S3Error(412, "PreconditionFailed");
  const common = {
    ...headers,
    etag,
    "accept-ranges": "bytes",
    "last-modified": new Date(modifiedMs).toUTCString(),
  };
  const [, from] = /^bytes=(\d+)-$/.exec(request.header("range") ?? "") ?? [];
  if (from === undefined) {
    const isAsked = request.header("x-amz-checksum-mode") === "ENABLED";
    return answer(200, content, { ...common, ...(isAsked && checksumHeaders(object)) });
  }
  if (Number(from) >= content.byteLength) throw new S3Error(416, "InvalidRange");
  const range = `bytes ${from}-${content.byteLength - 1}/${content.byteLength}`;
  return answer(206, content.subarray(Number(from)), { ...common, "content-range": range });
}

function conditions(request: S3Request): Conditions {
  return { ifNoneMatch: request.header("if-none-match"), ifMatch: request.header("if-match") };
}

function written(object: StoredObject): S3Answer {
  return answer(200, undefined, { etag: object.etag, ...checksumHeaders(object) });
}

function checksumHeaders({ checksum, checksumType }: StoredObject): S3Answer["headers"] {
  return { "x-amz-checksum-crc32": checksum, "x-amz-checksum-type": checksumType };
}

function answer(
  status: number,
  body: Buffer = Buffer.alloc(0),
  headers: S3Answer["headers"] = {},
): S3Answer {
  return { status, headers, body };
}

function xml(text: string): S3Answer {
  const body = Buffer.from(`<?xml version="1.0" encoding="UTF-8"?>${text}`);
  return answer(200, body, { "content-type": "application/xml" });
}
