/**
 * How a manifest is told from another: by its bytes, never by time stamps, which some file systems
 * round and some tools preserve.
 */
import { createHash } from "node:crypto";

/** SHA-256 of the bytes, hex. */
export function revisionOf(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
}
