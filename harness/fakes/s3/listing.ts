/**
 * Lists of keys, page by page: Amazon S3 API Reference, "ListObjectsV2".
 */
import { escapeXml } from "./errors.ts";
import type { Bucket } from "./objects.ts";

const maxKeys = 1_000;

/** One page, as XML. */
export function listObjects(bucket: Bucket, query: URLSearchParams): string {
  const prefix = query.get("prefix") ?? "";
  const delimiter = query.get("delimiter") ?? "";
  const token = query.get("continuation-token");
  const after = token === null ? (query.get("start-after") ?? "") : fromToken(token);
  const limit = Math.min(maxKeys, Number(query.get("max-keys") ?? maxKeys));
  const isEncoded = query.get("encoding-type") === "url";
  const shown = (key: string): string => (isEncoded ? encodeKey(key) : escapeXml(key));
  const entries: string[] = [];
  const groups = new Set<string>();
  let last = after;
  let isTruncated = false;
  const keys = [...bucket.objects.keys()].filter((key) => key.startsWith(prefix));
  for (const key of keys.sort(byBytes)) {
    if (byBytes(key, after) <= 0) continue;
    const cut = delimiter === "" ? -1 : key.indexOf(delimiter, prefix.length);
    const group = cut < 0 ? undefined : key.slice(0, cut + delimiter.length);
    if (group !== undefined && (groups.has(group) || after.startsWith(group))) continue;
    if (entries.length + groups.size >= limit) {
      isTruncated = true;
      break;
    }
    last = key;
    if (group !== undefined) groups.add(group);
    else entries.push(entryOf(bucket, key, shown));
  }
  return [
    `<ListBucketResult><Prefix>${shown(prefix)}</Prefix>`,
    `<KeyCount>${entries.length + groups.size}</KeyCount><MaxKeys>${limit}</MaxKeys>`,
    isEncoded ? "<EncodingType>url</EncodingType>" : "",
    `<IsTruncated>${isTruncated}</IsTruncated>`,
    isTruncated ? `<NextContinuationToken>${toToken(last)}</NextContinuationToken>` : "",
    ...entries,
    ...Array.from(
      groups,
      (group) => `<CommonPrefixes><Prefix>${shown(group)}</Prefix></CommonPrefixes>`,
    ),
    "</ListBucketResult>",
  ].join("");
}

function entryOf(bucket: Bucket, key: string, shown: (key: string) => string): string {
  const { content, etag, modifiedMs } = bucket.get(key);
  return [
    `<Contents><Key>${shown(key)}</Key><Size>${content.byteLength}</Size>`,
    `<ETag>${escapeXml(etag)}</ETag>`,
    `<LastModified>${new Date(modifiedMs).toISOString()}</LastModified></Contents>`,
  ].join("");
}

/** Keys are in the order of their UTF-8 bytes. */
function byBytes(one: string, other: string): number {
  return Buffer.compare(Buffer.from(one), Buffer.from(other));
}

function encodeKey(key: string): string {
  return encodeURIComponent(key).replaceAll("%20", "+").replaceAll("%2F", "/");
}

/** Opaque to clients. */
function toToken(key: string): string {
  return Buffer.from(key).toString("base64url");
}

function fromToken(token: string): string {
  return Buffer.from(token, "base64url").toString();
}
