/**
 * Events of the file system as an alarm clock: they say when to look, and never what changed. They
 * get lost on some file systems, and there may be none left for us.
 */
import { type FSWatcher, watch } from "node:fs";
import { basename } from "node:path";
import type { Clock } from "../../support/clock.ts";
import type { SeenDirectory } from "./fingerprint.ts";

/**
 * Directories followed by one set of hints. The kernel has some thousand watches for all programs
 * of a user.
 */
export const maxWatchedDirectories = 512;

/**
 * What the system says of a directory that is not what it was when it was seen; the next look has
 * more to say.
 */
const goneCodes: ReadonlySet<string | undefined> = new Set(["ENOENT", "ENOTDIR", "EACCES"]);

/** Follows directories, each with one watch for all that is in it. Its owner disposes it. */
export class ChangeHints implements Disposable {
  readonly #onLost: (error: unknown) => void;
  readonly #watchers = new Map<string, FSWatcher>();
  #isLost = false;
  /** Aborted by a hint; one that comes while nobody sleeps ends the next sleep at once. */
  #alarm = new AbortController();

  /**
   * @param onLost told once when the host has no more watches for us; those that there are go on
   */
  constructor(onLost: (error: unknown) => void) {
    this.#onLost = onLost;
  }

  /** Follows the first {@link maxWatchedDirectories} of these, and no others any more. */
  follow(directories: readonly SeenDirectory[]): void {
    const wanted = new Map(
      directories
        .slice(0, maxWatchedDirectories)
        // A directory that took the place of another needs a watch of its own.
        .map(({ path, inode }) => [`${inode}:${path}`, path]),
    );
    for (const key of [...this.#watchers.keys()]) if (!wanted.has(key)) this.#drop(key);
    for (const [key, path] of wanted) if (!this.#watchers.has(key)) this.#add(key, path);
  }

  /** Forgets hints of changes that a look which begins now will see. */
  clear(): void {
    if (this.#alarm.signal.aborted) this.#alarm = new AbortController();
  }

  /**
   * Sleeps until the time is over or a hint came. Rejects with the signal's reason when it aborts.
   */
  async sleep(ms: number, clock: Clock, signal: AbortSignal): Promise<void> {
    try {
      await clock.sleep(ms, AbortSignal.any([signal, this.#alarm.signal]));
    } catch (error) {
      signal.throwIfAborted();
      if (!this.#alarm.signal.aborted) throw error;
    }
  }

  [Symbol.dispose](): void {
    for (const key of [...this.#watchers.keys()]) this.#drop(key);
  }

  #add(key: string, path: string): void {
    if (this.#isLost) return;
    try {
      // Not chokidar, which would keep a second picture of the tree, and look at every file for it.
      const watcher = watch(path, { persistent: false }, (kind, name) => {
        this.#alarm.abort();
        // The directory itself may be gone, and its watch with it. The next look has another one
        // set up if it is not.
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
