/**
 * Events of the file system as hints: they end the pause before the next poll. Polling finds the
 * change, since some file systems lose events, and a host can run out of watches.
 */
import { type FSWatcher, watch } from "node:fs";
import { basename } from "node:path";
import type { Clock } from "./clock.ts";

/** Directories that one set of hints watches. The kernel has some thousand watches per user. */
export const maxWatchedDirectories = 512;

/** A directory to watch. Another inode at the same path needs another watch. */
export interface WatchedDirectory {
  readonly path: string;
  readonly inode?: number;
}

/** Milliseconds of a pause: at least `leastMs`, and `mostMs` without a hint. */
export interface Pause {
  readonly leastMs: number;
  readonly mostMs: number;
}

/** Codes of a directory that has gone. The next poll finds that out. */
const goneCodes: ReadonlySet<string | undefined> = new Set(["ENOENT", "ENOTDIR", "EACCES"]);

/** Watches directories, without those below them. Its owner disposes it. */
export class ChangeHints implements Disposable {
  readonly #onLost: (error: unknown) => void;
  readonly #watchers = new Map<string, FSWatcher>();
  #isLost = false;
  #hint = new AbortController();

  /** @param onLost called once, when the host has no more watches; existing ones stay */
  constructor(onLost: (error: unknown) => void) {
    this.#onLost = onLost;
  }

  /** Watches the first {@link maxWatchedDirectories} of these, and no others any more. */
  follow(directories: readonly WatchedDirectory[]): void {
    const wanted = new Map(
      directories
        .slice(0, maxWatchedDirectories)
        .map(({ path, inode }) => [`${inode}:${path}`, path]),
    );
    for (const key of [...this.#watchers.keys()]) if (!wanted.has(key)) this.#drop(key);
    for (const [key, path] of wanted) if (!this.#watchers.has(key)) this.#add(key, path);
  }

  /**
   * Pauses. A hint ends one pause: the present one, or the next one when none is under way. Rejects
   * with the signal's reason.
   */
  async pause({ leastMs, mostMs }: Pause, clock: Clock, signal: AbortSignal): Promise<void> {
    await clock.sleep(leastMs, signal);
    try {
      const either = AbortSignal.any([signal, this.#hint.signal]);
      if (mostMs > leastMs) await clock.sleep(mostMs - leastMs, either);
    } catch (error) {
      signal.throwIfAborted();
      if (!this.#hint.signal.aborted) throw error;
    }
    if (this.#hint.signal.aborted) this.#hint = new AbortController();
  }

  [Symbol.dispose](): void {
    for (const key of [...this.#watchers.keys()]) this.#drop(key);
  }

  #add(key: string, path: string): void {
    if (this.#isLost) return;
    try {
      const watcher = watch(path, { persistent: false }, (kind, name) => {
        this.#hint.abort();
        // The directory itself may have gone, and its watch with it: the next `follow` adds one.
        if (kind === "rename" && name === basename(path)) this.#drop(key);
      });
      watcher.on("error", () => this.#drop(key));
      this.#watchers.set(key, watcher);
    } catch (error) {
      if (goneCodes.has((error as NodeJS.ErrnoException).code)) return;
      this.#isLost = true;
      this.#onLost(error);
    }
  }

  #drop(key: string): void {
    this.#watchers.get(key)?.close();
    this.#watchers.delete(key);
  }
}
