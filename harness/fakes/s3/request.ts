/**
 * A request as S3 reads it: bucket, key and operation.
 */
import type { IncomingMessage } from "node:http";
import { S3Error } from "./errors.ts";

/** Names of the API. */
export type S3Operation =
  | "ListObjectsV2"
  | "HeadBucket"
  | "GetObject"
  | "HeadObject"
  | "PutObject"
  | "DeleteObject"
  | "CreateMultipartUpload"
  | "UploadPart"
  | "CompleteMultipartUpload"
  | "AbortMultipartUpload";

/** A request without its body. */
export interface S3Request {
  readonly method: string;
  /** As it was sent, encoded. */
  readonly path: string;
  readonly query: URLSearchParams;
  readonly bucket: string;
  readonly key: string;
  readonly operation: S3Operation;
  /** The first value of a header, or undefined. */
  header(name: string): string | undefined;
}

/** Reads path-style requests, and those with the bucket before `localhost` in the host name. */
export function readRequest({ method = "GET", url = "/", headers }: IncomingMessage): S3Request {
  const cut = url.indexOf("?");
  const path = cut < 0 ? url : url.slice(0, cut);
  const query = new URLSearchParams(cut < 0 ? "" : url.slice(cut + 1));
  const hostBucket = /^([^:]+)\.localhost(?::\d+)?$/.exec(headers.host ?? "")?.[1];
  const [, first = "", ...rest] = path.split("/");
  const bucket = hostBucket ?? decodeURIComponent(first);
  const encoded = hostBucket === undefined ? rest.join("/") : path.slice(1);
  const key = decodeURIComponent(encoded);
  return {
    ...{ method, path, query, bucket, key },
    operation: operationOf(method, key !== "", query),
    header: (name) => [headers[name] ?? []].flat()[0],
  };
}

function operationOf(method: string, hasKey: boolean, query: URLSearchParams): S3Operation {
  const isOfUpload = query.has("uploadId");
  const operations: Readonly<Record<string, S3Operation | undefined>> = hasKey
    ? {
        GET: "GetObject",
        HEAD: "HeadObject",
        PUT: isOfUpload ? "UploadPart" : "PutObject",
        POST: isOfUpload ? "CompleteMultipartUpload" : "CreateMultipartUpload",
        DELETE: isOfUpload ? "AbortMultipartUpload" : "DeleteObject",
      }
    : { GET: "ListObjectsV2", HEAD: "HeadBucket" };
  const operation = operations[method];
  if (operation === undefined) throw new S3Error(501, "NotImplemented");
  return operation;
}
