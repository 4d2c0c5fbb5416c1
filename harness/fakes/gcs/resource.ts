/**
 * Objects as JSON: JSON API, "Objects".
 */
import type { Bucket } from "./objects.ts";

/** The facts of an object. */
export type Resource = Readonly<Record<string, unknown>>;

/** Throws GcsFakeError without the object. */
export function resourceOf(bucket: Bucket, name: string): Resource {
  const { facts, content, checksums, generation, createdMs } = bucket.get(name);
  const time = new Date(createdMs).toISOString();
  return {
    kind: "storage#object",
    id: `${bucket.name}/${name}/${generation}`,
    bucket: bucket.name,
    storageClass: "STANDARD",
    ...facts,
    ...(facts.kmsKeyName !== undefined && {
      kmsKeyName: `${facts.kmsKeyName}/cryptoKeyVersions/1`,
    }),
    generation,
    metageneration: "1",
    size: String(content.byteLength),
    crc32c: checksums.crc32c,
    md5Hash: checksums.md5,
    etag: `${generation}/1`,
    timeCreated: time,
    updated: time,
  };
}
