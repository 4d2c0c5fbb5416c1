/**
 * Uploads in several requests: Cloud Storage, "Perform resumable uploads".
 */
import { fromHashHeader } from "./checksums.ts";
import { GcsFakeError } from "./errors.ts";
import { insertFacts, readFacts } from "./multipart.ts";
import { type Bucket, type StoredObject, type Upload, maxContentBytes } from "./objects.ts";
import { type GcsAnswer, answer, conditionsOf, json } from "./answers.ts";
import type { GcsRequest } from "./request.ts";
import { resourceOf } from "./resource.ts";

/** All but the last request bring a multiple of these bytes. */
const unitBytes = 256 * 1024;

export function startUpload(request: GcsRequest, bucket: Bucket, body: Buffer): GcsAnswer {
  const { query, header } = request;
  if (Number(header("x-upload-content-length") ?? 0) > maxContentBytes)
    throw new GcsFakeError(413, "uploadTooLarge");
  const id = bucket.startUpload(insertFacts(request, readFacts(body)), conditionsOf(request));
  const place = `/upload/storage/v1/b/${encodeURIComponent(bucket.name)}/o`;
  const search = new URLSearchParams({ ...Object.fromEntries(query), upload_id: id });
  const location = `http://${header("host")}${place}?${search.toString()}`;
  return answer(200, undefined, { location, "x-guploader-uploadid": id });
}

/** @param keptBytes how much of the body the server keeps; all of it by default */
export function putUpload(
  request: GcsRequest,
  bucket: Bucket,
  body: Buffer,
  keptBytes: number | undefined,
): GcsAnswer {
  const id = idOf(request);
  const done = bucket.completed(id);
  if (done !== undefined) return finished(bucket, done);
  const upload = bucket.upload(id);
  const whole = `bytes 0-${body.byteLength - 1}/${body.byteLength}`;
  const range = /^bytes (\d+)-(\d+)\/(\d+|\*)$/.exec(request.header("content-range") ?? whole);
  if (range === null) throw new GcsFakeError(400, "invalid", "Invalid Content-Range.");
  const [, first = "", last = "", total] = range;
  if (Number(last) - Number(first) + 1 !== body.byteLength)
    throw new GcsFakeError(400, "invalid", "Content-Range and body differ.");
  if (Number(first) > upload.bytes) return goesOn(upload);
  const isLast = total !== "*" && Number(last) + 1 === Number(total);
  const isWhole = (upload.bytes + body.byteLength) % unitBytes === 0;
  if (!isLast && !isWhole)
    throw new GcsFakeError(400, "invalid", "The chunk is no multiple of 256 KiB.");
  const fresh = body.subarray(upload.bytes - Number(first)).subarray(0, keptBytes);
  if (upload.bytes + fresh.byteLength > maxContentBytes)
    throw new GcsFakeError(413, "uploadTooLarge");
  upload.pieces.push(fresh);
  upload.bytes += fresh.byteLength;
  if (!isLast || upload.bytes < Number(total)) return goesOn(upload);
  const said = fromHashHeader(request.header("x-goog-hash"));
  return finished(bucket, bucket.completeUpload(id, said));
}

export function queryUpload(request: GcsRequest, bucket: Bucket): GcsAnswer {
  const id = idOf(request);
  const done = bucket.completed(id);
  return done === undefined ? goesOn(bucket.upload(id)) : finished(bucket, done);
}

export function cancelUpload(request: GcsRequest, bucket: Bucket): GcsAnswer {
  bucket.cancelUpload(idOf(request));
  return answer(499);
}

function idOf({ query }: GcsRequest): string {
  return query.get("upload_id") ?? "";
}

function goesOn({ bytes }: Upload): GcsAnswer {
  return answer(308, undefined, bytes === 0 ? {} : { range: `bytes=0-${bytes - 1}` });
}

function finished(bucket: Bucket, { facts }: StoredObject): GcsAnswer {
  return json(resourceOf(bucket, facts.name));
}
