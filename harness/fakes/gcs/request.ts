/**
 * A request as the JSON API reads it: bucket, object and operation.
 */
import type { IncomingMessage } from "node:http";
import { GcsFakeError } from "./errors.ts";

/** Names of the API's methods, and of the steps of uploads. */
export type GcsOperation =
  | "token"
  | "buckets.get"
  | "objects.list"
  | "objects.get"
  | "objects.download"
  | "objects.insert"
  | "objects.delete"
  | "uploads.start"
  | "uploads.put"
  /** The put that brings the last byte. */
  | "uploads.complete"
  | "uploads.query"
  | "uploads.cancel";

/** A request without its body. */
export interface GcsRequest {
  readonly operation: GcsOperation;
  readonly query: URLSearchParams;
  readonly bucket: string;
  readonly object: string;
  /** The first value of a header, or undefined. */
  header(name: string): string | undefined;
}

/** Throws GcsFakeError where there is no such operation. */
export function readRequest({ method = "GET", url = "/", headers }: IncomingMessage): GcsRequest {
  const [path = "", search = ""] = url.split("?");
  const query = new URLSearchParams(search);
  const header = (name: string): string | undefined => [headers[name] ?? []].flat()[0];
  const fields =
    /^\/(?:download\/|(upload)\/)?storage\/v1\/b\/([^/]+)(?:\/(o)(?:\/(.+))?)?$/.exec(path) ?? [];
  const [, upload, bucket = "", collection, object = ""] = fields;
  const request = { query, header };
  const names = { bucket: decodeURIComponent(bucket), object: decodeURIComponent(object) };
  if (path === "/token" && method === "POST") return { ...request, ...names, operation: "token" };
  const operation = upload
    ? uploadOperation(method, query, header("content-range"))
    : objectOperation(method, collection !== undefined, object !== "", query);
  if (bucket === "" || operation === undefined) throw new GcsFakeError(404, "notFound");
  return { ...request, ...names, operation };
}

function uploadOperation(
  method: string,
  query: URLSearchParams,
  range: string | undefined,
): GcsOperation | undefined {
  const operations: Readonly<Record<string, GcsOperation>> = query.has("upload_id")
    ? {
        PUT: putOperation(range),
        DELETE: "uploads.cancel",
      }
    : { POST: query.get("uploadType") === "resumable" ? "uploads.start" : "objects.insert" };
  return operations[method];
}

function putOperation(range = ""): GcsOperation {
  if (range.startsWith("bytes */")) return "uploads.query";
  const [, last, total] = /^bytes \d+-(\d+)\/(\d+|\*)$/.exec(range) ?? [];
  return total === "*" || Number(last) + 1 < Number(total) ? "uploads.put" : "uploads.complete";
}

function objectOperation(
  method: string,
  hasCollection: boolean,
  hasObject: boolean,
  query: URLSearchParams,
): GcsOperation | undefined {
  if (!hasObject && method !== "GET") return undefined;
  if (!hasObject) return hasCollection ? "objects.list" : "buckets.get";
  const read = query.get("alt") === "media" ? "objects.download" : "objects.get";
  const operations: Readonly<Record<string, GcsOperation>> = {
    GET: read,
    DELETE: "objects.delete",
  };
  return operations[method];
}
