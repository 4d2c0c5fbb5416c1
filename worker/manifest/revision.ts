/**
 * The revision of a manifest: a hash of its bytes. Some file systems round time stamps.
 */
import { createHash } from "node:crypto";

/** SHA-256 of the bytes, hex. */
export function revisionOf(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
}
