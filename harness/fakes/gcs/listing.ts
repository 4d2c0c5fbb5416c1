/**
 * Lists of objects, page by page: JSON API, "Objects: list".
 */
import type { Bucket } from "./objects.ts";
import { type Resource, resourceOf } from "./resource.ts";

const maxResults = 1_000;

/** One page. */
export interface ObjectPage {
  readonly items?: readonly Resource[];
  readonly prefixes?: readonly string[];
  readonly nextPageToken?: string;
}

export function listObjects(bucket: Bucket, query: URLSearchParams): ObjectPage {
  const prefix = query.get("prefix") ?? "";
  const delimiter = query.get("delimiter") ?? "";
  const start = query.get("startOffset") ?? "";
  const token = query.get("pageToken");
  const after = token === null ? undefined : fromToken(token);
  const limit = Math.min(maxResults, Number(query.get("maxResults") ?? maxResults));
  const items: Resource[] = [];
  const prefixes = new Set<string>();
  let last = "";
  let nextPageToken: string | undefined;
  const names = [...bucket.objects.keys()].filter((name) => name.startsWith(prefix));
  for (const name of names.sort(byBytes)) {
    if (byBytes(name, start) < 0) continue;
    const cut = delimiter === "" ? -1 : name.indexOf(delimiter, prefix.length);
    const entry = cut < 0 ? name : name.slice(0, cut + delimiter.length);
    if (after !== undefined && byBytes(entry, after) <= 0) continue;
    if (cut >= 0 && prefixes.has(entry)) continue;
    if (items.length + prefixes.size >= limit) {
      nextPageToken = toToken(last);
      break;
    }
    last = entry;
    if (cut >= 0) prefixes.add(entry);
    else items.push(resourceOf(bucket, name));
  }
  const page = {
    ...(items.length > 0 && { items }),
    ...(prefixes.size > 0 && { prefixes: [...prefixes] }),
    ...(nextPageToken !== undefined && { nextPageToken }),
  };
  return withFields(page, query.get("fields"));
}

/** The page with the fields of a mask such as `items(name,size),prefixes`. */
function withFields(page: ObjectPage, mask: string | null): ObjectPage {
  if (mask === null || mask === "*") return page;
  const ofItems = /items\(([^)]*)\)/.exec(mask)?.[1]?.split(",");
  const names = mask.replace(/\([^)]*\)/g, "").split(",");
  const chosen = Object.entries(page).filter(([name]) => names.includes(name));
  const items = page.items?.map((item) => {
    const facts = Object.entries(item);
    return Object.fromEntries(facts.filter(([name]) => ofItems?.includes(name) ?? true));
  });
  return {
    ...Object.fromEntries(chosen),
    ...(names.includes("items") && items !== undefined && { items }),
  };
}

/** Names are in the order of their UTF-8 bytes. */
function byBytes(one: string, other: string): number {
  return Buffer.compare(Buffer.from(one), Buffer.from(other));
}

/** Opaque to clients. */
function toToken(name: string): string {
  return Buffer.from(name).toString("base64url");
}

function fromToken(token: string): string {
  return Buffer.from(token, "base64url").toString();
}
