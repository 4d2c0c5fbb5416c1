/**
 * The tools of other workers that programs of this one may call: a directory of what their workers
 * say of them.
 */
import { isDeepStrictEqual } from "node:util";
import type { Announcement } from "../protocol/discovery/announcement.ts";
import { type CatalogEntry, maxTools } from "./catalog.ts";

/** Tools of other workers that a worker knows; further names of the manifest are not callable. */
export const maxRemoteTools = maxTools;
/** Bytes of all announcements; a tool beyond them stays without a description. */
export const maxDirectoryBytes = 32 * 1024 * 1024;

/** The backend of calls to other workers, in reports. */
export const remoteBackend = "remote";

interface Known {
  readonly announcement: Announcement;
  readonly sizeBytes: number;
}

/** Knows the tools that manifest entries list, with or without a description. */
export class RemoteDirectory {
  #names: ReadonlySet<string> = new Set();
  readonly #known = new Map<string, Known>();
  #sizeBytes = 0;
  #entries: readonly CatalogEntry[] | undefined;

  /** The listed names. */
  get names(): ReadonlySet<string> {
    return this.#names;
  }

  /** The tools that programs may call: another array after each change. */
  get entries(): readonly CatalogEntry[] {
    this.#entries ??= [...this.#names].flatMap((name) => this.#entryOf(name) ?? []);
    return this.#entries;
  }

  /** Follows the lists of a manifest: forgets other tools. */
  follow(names: Iterable<string>): void {
    this.#names = new Set(Array.from(new Set(names)).slice(0, maxRemoteTools));
    for (const name of this.#known.keys()) if (!this.#names.has(name)) this.#forget(name);
    this.#entries = undefined;
  }

  /** What a tool's worker says of it. The last one counts, of whichever worker. */
  announced(name: string, announcement: Announcement, sizeBytes: number): void {
    if (!this.#names.has(name)) return;
    if (isDeepStrictEqual(this.#known.get(name)?.announcement, announcement)) return;
    this.#forget(name);
    const fits = this.#sizeBytes + sizeBytes <= maxDirectoryBytes;
    const known = fits ? { announcement, sizeBytes } : undescribed(announcement);
    this.#known.set(name, known);
    this.#sizeBytes += known.sizeBytes;
  }

  /** A worker serves the tool no longer. Others may: it stays callable by whom it was. */
  removed(name: string): void {
    const known = this.#known.get(name);
    this.#forget(name);
    if (known?.announcement.allowedCallers !== undefined)
      this.#known.set(name, undescribed(known.announcement));
  }

  get(name: string): Announcement | undefined {
    return this.#known.get(name)?.announcement;
  }

  #forget(name: string): void {
    const known = this.#known.get(name);
    this.#known.delete(name);
    this.#sizeBytes -= known?.sizeBytes ?? 0;
    this.#entries = undefined;
  }

  /** Undefined for a tool whose worker allows no programs. */
  #entryOf(name: string): CatalogEntry | undefined {
    const announcement = this.get(name);
    if (announcement?.allowedCallers?.has("programmatic") === false) return undefined;
    return {
      id: name,
      description: announcement?.description,
      notes: announcement?.instructions,
      parameters: announcement?.parameters,
      returns: announcement?.result,
    };
  }
}

/** Without a place for its description it is still known who may call the tool. */
function undescribed({ allowedCallers }: Announcement): Known {
  const nothing = { description: undefined, instructions: undefined };
  const noSchemas = { parameters: undefined, result: undefined, artifactParameters: new Map() };
  return { announcement: { ...nothing, ...noSchemas, allowedCallers }, sizeBytes: 0 };
}
