/**
 * Tries whether a server keeps conditions: without them, two savers could take one version.
 */
import { randomUUID } from "node:crypto";
import { marksLevel } from "../scope.ts";
import type { GcsBucket } from "./bucket.ts";
import { Checksum } from "./checksum.ts";
import { isConditionFailed } from "./failures.ts";

/** Creates an object twice, and removes it. Throws GcsError. */
export async function keepsConditions(bucket: GcsBucket, signal: AbortSignal): Promise<boolean> {
  // Beside the scopes, of which none has this name.
  const name = `${marksLevel}/probe-${randomUUID()}`;
  const object = { name, contentType: "text/plain", metadata: {}, replaces: "0" };
  const create = () => bucket.insert(object, Buffer.alloc(0), new Checksum().value, signal);
  await create();
  try {
    await create();
    return false;
  } catch (error) {
    if (isConditionFailed(error)) return true;
    throw error;
  } finally {
    await bucket.delete(name, signal);
  }
}
