/**
 * Verifies signatures: Amazon S3 API Reference, "Signature calculations for the Authorization
 * header" (version 4).
 */
import { createHash, createHmac, timingSafeEqual } from "node:crypto";
import { S3Error } from "./errors.ts";
import type { S3Request } from "./request.ts";

/** Who may send requests, and when. */
export interface S3Credentials {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly region: string;
}

const algorithm = "AWS4-HMAC-SHA256";

const authorization = new RegExp(
  `^${algorithm} Credential=([^/]+)/(\\d{8})/([^/]+)/s3/aws4_request, ?` +
    `SignedHeaders=([\\w;-]+), ?Signature=([0-9a-f]{64})$`,
);

/** Most milliseconds between the clocks of client and server. */
const maxSkewMs = 15 * 60_000;

/** Bodies whose hash is not in the signature. */
const unsignedBodies: readonly string[] = [
  "UNSIGNED-PAYLOAD",
  "STREAMING-UNSIGNED-PAYLOAD-TRAILER",
];

/**
 * Throws S3Error unless the request is signed with these credentials.
 *
 * @param nowMs epoch milliseconds of the server's clock
 */
export function verifySignature(
  request: S3Request,
  body: Buffer,
  { accessKeyId, secretAccessKey, region }: S3Credentials,
  nowMs: number,
): void {
  const fields = authorization.exec(request.header("authorization") ?? "");
  if (fields === null) throw new S3Error(403, "AccessDenied");
  const [, keyId, day = "", ofRegion, names = "", signature = ""] = fields;
  if (keyId !== accessKeyId) throw new S3Error(403, "InvalidAccessKeyId");
  if (ofRegion !== region) throw new S3Error(400, "AuthorizationHeaderMalformed");
  const time = request.header("x-amz-date") ?? "";
  if (Math.abs(nowMs - epochMsOf(time)) > maxSkewMs) throw new S3Error(403, "RequestTimeTooSkewed");
  const bodyHash = request.header("x-amz-content-sha256") ?? "";
  if (!unsignedBodies.includes(bodyHash) && bodyHash !== sha256(body))
    throw new S3Error(400, "XAmzContentSHA256Mismatch");
  const scope = `${day}/${region}/s3/aws4_request`;
  const canonical = canonicalRequest(request, names, bodyHash);
  const text = [algorithm, time, scope, sha256(canonical)].join("\n");
  const key = [day, region, "s3", "aws4_request"].reduce<string | Buffer>(
    (secret, part) => hmac(secret, part),
    `AWS4${secretAccessKey}`,
  );
  if (!timingSafeEqual(hmac(key, text), Buffer.from(signature, "hex")))
    throw new S3Error(403, "SignatureDoesNotMatch");
}

function canonicalRequest(request: S3Request, names: string, bodyHash: string): string {
  const { method, path, query } = request;
  const pairs = Array.from(query, ([name, value]) => `${encode(name)}=${encode(value)}`).sort();
  const headers = names
    .split(";")
    .map((name) => `${name}:${(request.header(name) ?? "").trim().replace(/ +/g, " ")}\n`);
  return [method, path, pairs.join("&"), headers.join(""), names, bodyHash].join("\n");
}

/** RFC 3986 leaves fewer characters as they are than JavaScript does. */
function encode(text: string): string {
  return encodeURIComponent(text).replace(
    /[!'()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}

/** Of `20260102T030405Z`. */
function epochMsOf(time: string): number {
  return Date.parse(
    time.replace(/^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/, "$1-$2-$3T$4:$5:$6Z"),
  );
}

function sha256(content: string | Buffer): string {
  return createHash("sha256").update(content).digest("hex");
}

function hmac(key: string | Buffer, text: string): Buffer {
  return createHmac("sha256", key).update(text).digest();
}
