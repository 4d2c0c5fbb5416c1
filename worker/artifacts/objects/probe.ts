/**
 * Tries whether a server keeps conditions: without them, two savers could take one version.
 */
import { randomUUID } from "node:crypto";
import type { Condition, ObjectBucket } from "./bucket.ts";
import { marksPrefix } from "./marks.ts";

/** Concurrent creators of one object: some servers refuse only those that come after another. */
const creators = 4;

/** Creates one object in concurrent requests, replaces it twice, and removes it. */
export async function keepsConditions(bucket: ObjectBucket, signal: AbortSignal): Promise<boolean> {
  // Beside the scopes, of which none has this name.
  const key = `${marksPrefix}probe-${randomUUID()}`;
  const object = { key, contentType: "text/plain", metadata: {} };
  // Other content each time, and so another ETag.
  const write = (condition: Condition | undefined): Promise<string> =>
    bucket.write(object, Buffer.from(randomUUID()), condition, signal);
  const tryWrite = async (condition: Condition): Promise<"written" | "refused" | "unsupported"> => {
    try {
      await write(condition);
      return "written";
    } catch (error) {
      const meaning = bucket.meaningOf(error);
      if (meaning === "unsupported") return meaning;
      if (meaning === "condition failed" || meaning === "conflict") return "refused";
      throw error;
    }
  };
  try {
    const creating = Array.from({ length: creators }, () => tryWrite("absent"));
    const created = await Promise.all(creating);
    // It may be something else that it does not know, which every save needs.
    if (created.includes("unsupported")) await write(undefined);
    // None is told of its success where the answer was lost.
    if (created.filter((outcome) => outcome !== "refused").length > 1) return false;
    const facts = await bucket.head(key, signal);
    if (facts === undefined) return false;
    await tryWrite(facts);
    return (await tryWrite(facts)) === "refused";
  } finally {
    await bucket.delete(key, undefined, signal);
  }
}
