/**
 * Comparison of secrets.
 */
import { createHash, timingSafeEqual } from "node:crypto";

/** Whether a text is the secret. Takes the same time for every text. */
export function isSecret(text: string, secret: string): boolean {
  const digest = (value: string): Buffer => createHash("sha256").update(value).digest();
  return timingSafeEqual(digest(text), digest(secret));
}
