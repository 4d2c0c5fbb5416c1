/**
 * Checksums of content: Cloud Storage, "Data validation and change detection". CRC32C is computed
 * here by code other than the store's.
 */
import { createHash } from "node:crypto";
import { GcsFakeError } from "./errors.ts";

/** The remainder of each byte by Castagnoli's polynomial, reversed. */
const table = Uint32Array.from({ length: 256 }, (_, byte) => {
  let remainder = byte;
  for (let bit = 0; bit < 8; bit++)
    remainder = remainder & 1 ? (remainder >>> 1) ^ 0x82f63b78 : remainder >>> 1;
  return remainder;
});

/** By name, in base64. */
export interface Checksums {
  readonly crc32c: string;
  readonly md5: string;
}

/** Those that a client sent. */
export type SaidChecksums = { readonly [Name in keyof Checksums]?: string | undefined };

export function checksumsOf(content: Buffer): Checksums {
  let crc = 0xffffffff;
  // By index: the iterator of a buffer takes five times as long.
  for (let at = 0; at < content.length; at++)
    crc = (table[(crc ^ (content[at] ?? 0)) & 0xff] ?? 0) ^ (crc >>> 8);
  const octets = Buffer.alloc(4);
  octets.writeUInt32BE((crc ^ 0xffffffff) >>> 0);
  const md5 = createHash("md5").update(content).digest("base64");
  return { crc32c: octets.toString("base64"), md5 };
}

/** As the header `x-goog-hash` has them. */
export function toHashHeader({ crc32c, md5 }: Checksums): string {
  return `crc32c=${crc32c},md5=${md5}`;
}

export function fromHashHeader(header = ""): SaidChecksums {
  const value = (name: string): string | undefined =>
    new RegExp(`(?:^|,)\\s*${name}=([^,\\s]+)`).exec(header)?.[1];
  return { crc32c: value("crc32c"), md5: value("md5") };
}

/** Throws GcsFakeError where a checksum that a client sent is another one. */
export function requireChecksums(actual: Checksums, said: SaidChecksums): void {
  for (const name of ["crc32c", "md5"] as const) {
    if (said[name] === undefined || said[name] === actual[name]) continue;
    const message = `Provided ${name} hash "${said[name]}" doesn't match calculated one.`;
    throw new GcsFakeError(400, "invalid", message);
  }
}
