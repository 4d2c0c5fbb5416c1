/**
 * The worker's copies of toolsets: a call has the code of one, whole, until it ends.
 */
import { chmod, mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import type { NewId } from "../../support/ids.ts";
import { unpackArchive } from "./archive.ts";
import { SnapshotWriter } from "./snapshot-writer.ts";
import { copyTree } from "./tree.ts";

/** Where a toolset lies: a directory or a ZIP file. */
export interface ToolsetSource {
  readonly path: string;
  readonly kind: "directory" | "archive";
}

/** A copy that does not change. */
export interface Snapshot {
  readonly directory: string;
  /** Identifies the content. */
  readonly revision: string;
}

/** Holds a copy for a sandbox. Disposed after the sandbox is gone. */
export interface ToolsetLease extends Disposable {
  /** Readable for sandboxes of every user. */
  readonly directory: string;
}

interface Kept extends Snapshot {
  users: number;
  isCurrent: boolean;
}

/** Copies below one directory, which its owner removes. */
export class Snapshots {
  readonly #base: string;
  readonly #newId: NewId;
  readonly #onRemoveFailed: (error: unknown) => void;
  /** By the name of their toolset. */
  readonly #current = new Map<string, Kept>();

  /** @param base directory that exists or can be made; sandboxes can pass it */
  constructor(base: string, newId: NewId, onRemoveFailed: (error: unknown) => void) {
    this.#base = base;
    this.#newId = newId;
    this.#onRemoveFailed = onRemoveFailed;
  }

  /**
   * Copies a toolset; the caller puts the copy in force or drops it. Throws ToolsetError, the
   * system's error, the signal's reason.
   */
  async make({ path, kind }: ToolsetSource, signal: AbortSignal): Promise<Snapshot> {
    const directory = join(this.#base, this.#newId());
    await mkdir(this.#base, { recursive: true });
    await mkdir(directory);
    await chmod(this.#base, 0o711);
    await chmod(directory, 0o755);
    try {
      const writer = new SnapshotWriter(directory);
      await (kind === "archive" ? unpackArchive : copyTree)(path, writer, signal);
      return { directory, revision: writer.revision };
    } catch (error) {
      await this.#remove({ directory });
      throw error;
    }
  }

  /** Revision of the copy that is in force. */
  revisionOf(name: string): string | undefined {
    return this.#current.get(name)?.revision;
  }

  /** Puts a copy in force for new calls; undefined for none. */
  async replace(name: string, snapshot: Snapshot | undefined): Promise<void> {
    const former = this.#current.get(name);
    if (snapshot === undefined) this.#current.delete(name);
    else this.#current.set(name, { ...snapshot, users: 0, isCurrent: true });
    if (former === undefined) return;
    former.isCurrent = false;
    if (former.users === 0) await this.#remove(former);
  }

  /** Removes a copy that was not put in force. */
  async drop(snapshot: Snapshot): Promise<void> {
    await this.#remove(snapshot);
  }

  /** The copy that is in force; undefined where there is none. The caller owns the lease. */
  lease(name: string): ToolsetLease | undefined {
    const kept = this.#current.get(name);
    if (kept === undefined) return undefined;
    kept.users++;
    return {
      directory: kept.directory,
      [Symbol.dispose]: () => {
        kept.users--;
        if (!kept.isCurrent && kept.users === 0) void this.#remove(kept);
      },
    };
  }

  async #remove({ directory }: Pick<Snapshot, "directory">): Promise<void> {
    await rm(directory, { recursive: true, force: true }).catch(this.#onRemoveFailed);
  }
}
