/**
 * Announcement of a worker: a JSON-RPC notification on a topic of all worker groups.
 */
import { z } from "zod";

/** The method of an announcement. */
export const announcementMethod = "sam_remote_tool/worker";

/** Bytes of the largest announcement that is decoded. */
export const maxAnnouncementBytes = 1024 * 1024;

const schema = z.object({
  method: z.literal(announcementMethod),
  params: z.object({
    /** Unique per process, also for processes with one worker id. */
    instance: z.string(),
    worker: z.string(),
    group: z.string(),
    /** The store of its marks; null where no other worker shares them. */
    store: z.string().nullable(),
    /** Tools that its group serves. */
    tools: z.array(z.string()),
  }),
});

/** A worker and the tools that its group serves. */
export type Announcement = Readonly<z.infer<typeof schema>["params"]>;

/** Encodes an announcement as UTF-8 JSON. */
export function encodeAnnouncement(params: Announcement): Uint8Array {
  return Buffer.from(JSON.stringify({ jsonrpc: "2.0", method: announcementMethod, params }));
}

/** Undefined for any other message. */
export function decodeAnnouncement(payload: Uint8Array): Announcement | undefined {
  if (payload.byteLength > maxAnnouncementBytes) return undefined;
  try {
    return schema.parse(JSON.parse(Buffer.from(payload).toString())).params;
  } catch {
    return undefined;
  }
}
