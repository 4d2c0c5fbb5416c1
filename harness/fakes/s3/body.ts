/**
 * Bodies of requests: read whole, taken out of their chunks, and compared with their checksums.
 */
import { createHash } from "node:crypto";
import type { IncomingMessage } from "node:http";
import { crc32 } from "node:zlib";
import { S3Error } from "./errors.ts";
import type { S3Request } from "./request.ts";

/** Bytes of a body: more than any part that clients of tests send. */
const maxBodyBytes = 256 * 1024 * 1024;

/** By the header that carries it, in base64. */
const checksums: Readonly<Record<string, (content: Buffer) => string>> = {
  "content-md5": (content) => createHash("md5").update(content).digest("base64"),
  "x-amz-checksum-crc32": crc32Of,
  "x-amz-checksum-sha1": (content) => createHash("sha1").update(content).digest("base64"),
  "x-amz-checksum-sha256": (content) => createHash("sha256").update(content).digest("base64"),
};

/** Base64 of the four octets of a CRC-32. */
export function crc32Of(content: Buffer): string {
  const octets = Buffer.alloc(4);
  octets.writeUInt32BE(crc32(content));
  return octets.toString("base64");
}

/** Throws S3Error for headers of checksums that servers knew not before 2022. */
export function refuseChecksums(headers: readonly string[]): void {
  const isNewer = (name: string): boolean => /^x-amz-(?:checksum|sdk-checksum|trailer)/.test(name);
  if (!headers.some(isNewer)) return;
  const why = "A header you provided implies functionality that is not implemented";
  throw new S3Error(501, "NotImplemented", why);
}

/** The body as it was sent. Throws S3Error when it is too large. */
export async function readBody(message: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of message as AsyncIterable<Buffer>) {
    bytes += chunk.byteLength;
    if (bytes > maxBodyBytes) throw new S3Error(400, "EntityTooLarge");
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

/** The content of a body. Throws S3Error when a checksum of header or trailer differs. */
export function contentOf(request: S3Request, body: Buffer): Buffer {
  const isChunked = request.header("content-encoding")?.includes("aws-chunked") === true;
  const { content, trailers } = isChunked
    ? unchunked(body)
    : { content: body, trailers: noTrailers };
  const length = request.header("x-amz-decoded-content-length");
  if (isChunked && length !== undefined && Number(length) !== content.byteLength)
    throw new S3Error(400, "IncompleteBody");
  for (const [name, compute] of Object.entries(checksums)) {
    const said = trailers.get(name) ?? request.header(name);
    // That of a whole object comes with the request that completes it.
    if (said === undefined || request.operation === "CompleteMultipartUpload") continue;
    if (said !== compute(content)) throw new S3Error(400, "BadDigest");
  }
  return content;
}

const noTrailers: ReadonlyMap<string, string> = new Map();

/** Chunks are a size in hexadecimal, a line end, the bytes, a line end; the last one is empty. */
function unchunked(body: Buffer): {
  readonly content: Buffer;
  readonly trailers: ReadonlyMap<string, string>;
} {
  const pieces: Buffer[] = [];
  for (let at = 0; ;) {
    const end = body.indexOf("\r\n", at);
    const size = Number.parseInt(body.toString("latin1", at, end), 16);
    if (end < 0 || Number.isNaN(size)) throw new S3Error(400, "IncompleteBody");
    at = end + 2;
    if (size === 0) {
      const lines = body.toString("latin1", at).matchAll(/^([\w-]+):(.*)$/gm);
      const trailers = [...lines].map(([, name = "", value = ""]) => [name, value.trim()] as const);
      return { content: Buffer.concat(pieces), trailers: new Map(trailers) };
    }
    pieces.push(body.subarray(at, at + size));
    at += size + 2;
  }
}
