/**
 * What workers tell each other: a JSON-RPC notification on a topic of all worker groups.
 */
import { z } from "zod";

/** The method of an announcement. */
export const announcementMethod = "sam_remote_tool/worker";

/** Bytes of an announcement that are looked at. */
export const maxAnnouncementBytes = 1024 * 1024;

const schema = z.object({
  method: z.literal(announcementMethod),
  params: z.object({
    /** Tells processes apart, also those with the same worker id. */
    instance: z.string(),
    worker: z.string(),
    group: z.string(),
    /** The store of its marks; null when no other worker can see them. */
    store: z.string().nullable(),
    /** Tools whose calls its group takes. */
    tools: z.array(z.string()),
  }),
});

/** A worker and the tools whose calls its group takes. */
export type Announcement = Readonly<z.infer<typeof schema>["params"]>;

/** Encodes an announcement as UTF-8 JSON. */
export function encodeAnnouncement(params: Announcement): Uint8Array {
  return Buffer.from(JSON.stringify({ jsonrpc: "2.0", method: announcementMethod, params }));
}

/** The announcement in a message, or undefined when it is none. */
export function decodeAnnouncement(payload: Uint8Array): Announcement | undefined {
  if (payload.byteLength > maxAnnouncementBytes) return undefined;
  try {
    return schema.parse(JSON.parse(Buffer.from(payload).toString())).params;
  } catch {
    return undefined;
  }
}
