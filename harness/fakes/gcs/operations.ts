/**
 * What each operation does with a bucket, and its answer.
 */
import { type GcsAnswer, answer, conditionsOf, json } from "./answers.ts";
import { toHashHeader } from "./checksums.ts";
import { GcsFakeError } from "./errors.ts";
import { listObjects } from "./listing.ts";
import { insertFacts, readMultipart } from "./multipart.ts";
import type { Bucket, StoredObject } from "./objects.ts";
import type { GcsOperation, GcsRequest } from "./request.ts";
import { resourceOf } from "./resource.ts";
import { cancelUpload, putUpload, queryUpload, startUpload } from "./uploads.ts";

/** Does what a request asks for. Throws GcsFakeError, and then leaves everything as it was. */
export function perform(
  request: GcsRequest,
  bucket: Bucket,
  body: Buffer,
  keptBytes: number | undefined,
): GcsAnswer {
  const { object: name, query } = request;
  const operations: Readonly<Record<Exclude<GcsOperation, "token">, () => GcsAnswer>> = {
    "buckets.get": () => json({ kind: "storage#bucket", name: bucket.name }),
    "objects.list": () => json(listObjects(bucket, query)),
    "objects.get": () => {
      readable(bucket, request);
      return json(resourceOf(bucket, name));
    },
    "objects.download": () => download(request, readable(bucket, request)),
    "objects.insert": () => insert(request, bucket, body),
    "objects.delete": () => {
      bucket.delete(name, conditionsOf(request));
      return answer(204);
    },
    "uploads.start": () => startUpload(request, bucket, body),
    "uploads.put": () => putUpload(request, bucket, body, keptBytes),
    "uploads.complete": () => putUpload(request, bucket, body, keptBytes),
    "uploads.query": () => queryUpload(request, bucket),
    "uploads.cancel": () => cancelUpload(request, bucket),
  };
  if (request.operation === "token") throw new GcsFakeError(404, "notFound");
  return operations[request.operation]();
}

function insert(request: GcsRequest, bucket: Bucket, body: Buffer): GcsAnswer {
  const { facts, content } =
    request.query.get("uploadType") === "multipart"
      ? readMultipart(request, body)
      : { facts: insertFacts(request, {}), content: body };
  const { name } = bucket.put(facts, content, conditionsOf(request)).facts;
  return json(resourceOf(bucket, name));
}

/** The object of a request that reads. Throws GcsFakeError where it asks for another one. */
function readable(bucket: Bucket, request: GcsRequest): StoredObject {
  const { object: name, query } = request;
  const found = bucket.get(name);
  const generation = query.get("generation") ?? found.generation;
  if (generation !== found.generation)
    throw new GcsFakeError(404, "notFound", `No such object: ${bucket.name}/${name}#${generation}`);
  if (query.get("ifGenerationNotMatch") === found.generation) throw new GcsFakeError(304, "");
  bucket.require(name, conditionsOf(request));
  return found;
}

function download(request: GcsRequest, object: StoredObject): GcsAnswer {
  const { content, facts, checksums, generation, createdMs } = object;
  const headers = {
    "content-type": facts.contentType ?? "application/octet-stream",
    ...(facts.contentEncoding !== undefined && { "content-encoding": facts.contentEncoding }),
    etag: `${generation}/1`,
    "accept-ranges": "bytes",
    "last-modified": new Date(createdMs).toUTCString(),
    "x-goog-generation": generation,
    "x-goog-metageneration": "1",
    "x-goog-storage-class": facts.storageClass ?? "STANDARD",
    "x-goog-stored-content-length": String(content.byteLength),
    "x-goog-hash": toHashHeader(checksums),
  };
  const [, from, to] = /^bytes=(\d+)-(\d*)$/.exec(request.header("range") ?? "") ?? [];
  if (from === undefined) return answer(200, content, headers);
  const first = Number(from);
  if (first >= content.byteLength)
    throw new GcsFakeError(416, "requestedRangeNotSatisfiable", "Request range not satisfiable");
  const last = Math.min(to ? Number(to) : Infinity, content.byteLength - 1);
  const range = `bytes ${first}-${last}/${content.byteLength}`;
  return answer(206, content.subarray(first, last + 1), { ...headers, "content-range": range });
}
