/**
 * The worker's copies of toolsets: a call has the code of one, whole, until it ends.
 */
import { chmod, mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import type { NewId } from "../../support/ids.ts";
import { unpackArchive } from "./archive.ts";
import { CopyError, ToolsetBudget, toolsetLimits } from "./budget.ts";
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
  /** Of its files. */
  readonly bytes: number;
}

/** A state of a toolset. */
export interface ToolsetRevision {
  readonly name: string;
  readonly revision: string;
}

/** Holds a copy for a sandbox. Disposed after the sandbox is gone. */
export interface ToolsetLease extends Disposable {
  /** Readable for sandboxes of every user. */
  readonly directory: string;
}

interface Kept extends Snapshot {
  readonly name: string;
  users: number;
  /** Whether new calls may still need it. */
  isRetained: boolean;
}

/** Copies below one directory, which its owner removes. */
export class Snapshots {
  readonly #base: string;
  readonly #newId: NewId;
  readonly #onRemoveFailed: (error: unknown) => void;
  /** By name and revision. */
  readonly #kept = new Map<string, Kept>();

  /** @param base directory that exists or can be made; sandboxes can pass it */
  constructor(base: string, newId: NewId, onRemoveFailed: (error: unknown) => void) {
    this.#base = base;
    this.#newId = newId;
    this.#onRemoveFailed = onRemoveFailed;
  }

  /**
   * Copies a toolset; the caller keeps the copy or drops it. Throws ToolsetError, CopyError, the
   * system's error for the source, the signal's reason.
   */
  async make({ path, kind }: ToolsetSource, signal: AbortSignal): Promise<Snapshot> {
    const directory = join(this.#base, this.#newId());
    try {
      await CopyError.of(this.#makeDirectory(directory));
      const others = this.#kept.values().reduce((sum, { bytes }) => sum + bytes, 0);
      const budget = new ToolsetBudget(toolsetLimits.togetherBytes - others);
      const writer = new SnapshotWriter(directory, budget);
      await (kind === "archive" ? unpackArchive : copyTree)(path, writer, signal);
      return { directory, revision: writer.revision, bytes: budget.bytes };
    } catch (error) {
      await this.#remove(directory);
      throw error;
    }
  }

  /** Keeps a copy until {@link retain} leaves it out; a second one of the same state is dropped. */
  async keep(name: string, snapshot: Snapshot): Promise<void> {
    const key = keyOf({ name, revision: snapshot.revision });
    const known = this.#kept.get(key);
    if (known === undefined) {
      this.#kept.set(key, { ...snapshot, name, users: 0, isRetained: true });
    } else {
      known.isRetained = true;
      await this.drop(snapshot);
    }
  }

  /** Removes copies of all other states, each as soon as no lease holds it. */
  async retain(revisions: Iterable<ToolsetRevision>): Promise<void> {
    const keys = new Set(Array.from(revisions, keyOf));
    for (const [key, kept] of this.#kept) {
      kept.isRetained = keys.has(key);
      await this.#removeUnused(kept);
    }
  }

  /** Removes a copy that is not kept. */
  async drop(snapshot: Snapshot): Promise<void> {
    await this.#remove(snapshot.directory);
  }

  /** The copy of a state; undefined where there is none. The caller owns the lease. */
  lease(of: ToolsetRevision): ToolsetLease | undefined {
    const kept = this.#kept.get(keyOf(of));
    if (kept === undefined) return undefined;
    kept.users++;
    return {
      directory: kept.directory,
      [Symbol.dispose]: () => {
        kept.users--;
        void this.#removeUnused(kept);
      },
    };
  }

  async #makeDirectory(directory: string): Promise<void> {
    await mkdir(this.#base, { recursive: true });
    await mkdir(directory);
    await chmod(this.#base, 0o711);
    await chmod(directory, 0o755);
  }

  async #removeUnused(kept: Kept): Promise<void> {
    if (kept.isRetained || kept.users > 0) return;
    if (this.#kept.delete(keyOf(kept))) await this.#remove(kept.directory);
  }

  async #remove(directory: string): Promise<void> {
    await rm(directory, { recursive: true, force: true }).catch(this.#onRemoveFailed);
  }
}

function keyOf({ name, revision }: ToolsetRevision): string {
  return `${name} ${revision}`;
}
