/**
 * Changes of source files, in batches: an editor, a formatter or a checkout writes many files at
 * once.
 */
import { EventEmitter, once } from "node:events";
import { basename } from "node:path";
import { type FSWatcher, watch } from "chokidar";
import type { Clock } from "../../worker/support/clock.ts";

/** Milliseconds without a change after which a batch is complete. */
export const settleMs = 200;
/** Milliseconds after which a batch is complete although changes go on. */
const maxSettleMs = 2_000;
/** Files of a batch whose names are kept. */
const maxNames = 100;

/** Not sources: what Python compiles, what editors write beside a file. */
const ignoredName = /^__pycache__$|^\.|~$|^4913$/;

/** Follows files and directories from the moment it is opened. Its owner disposes it. */
export class SourceChanges implements AsyncDisposable {
  readonly #watcher: FSWatcher;
  readonly #clock: Clock;
  readonly #events = new EventEmitter<{ changed: [] }>();
  readonly #names = new Set<string>();
  /** Changes since the beginning. */
  #count = 0;

  private constructor(watcher: FSWatcher, clock: Clock) {
    this.#watcher = watcher;
    this.#clock = clock;
    watcher.on("all", (_event, path) => {
      if (this.#names.size < maxNames) this.#names.add(path);
      this.#count++;
      this.#events.emit("changed");
    });
  }

  /**
   * Resolves when every later change will be seen.
   *
   * @param onLost told when the host cannot say what changes, as when it is out of inotify watches
   */
  static async open(
    paths: readonly string[],
    clock: Clock,
    onLost: (error: unknown) => void,
  ): Promise<SourceChanges> {
    const watcher = watch([...paths], {
      ignoreInitial: true,
      ignored: (path) => !paths.includes(path) && ignoredName.test(basename(path)),
    });
    const ready = Promise.withResolvers<void>();
    watcher.once("ready", () => ready.resolve());
    watcher.once("error", (error) => {
      onLost(error);
      ready.resolve();
    });
    // Every further error has a listener too: an `error` event without one ends the process.
    watcher.on("error", () => {});
    const changes = new SourceChanges(watcher, clock);
    await ready.promise;
    return changes;
  }

  /**
   * Paths of changed files, batch by batch; those that change while nobody asks make one batch.
   * Ends with the signal.
   */
  async *batches(signal: AbortSignal): AsyncGenerator<readonly string[], void> {
    try {
      for (;;) {
        if (this.#names.size === 0) await once(this.#events, "changed", { signal });
        await this.#settled(signal);
        const batch = [...this.#names];
        this.#names.clear();
        yield batch;
      }
    } catch (error) {
      if (!signal.aborted) throw error;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#watcher.close();
  }

  /** Waits until the files rest for a moment. Rejects with the signal's reason. */
  async #settled(signal: AbortSignal): Promise<void> {
    const deadlineMs = this.#clock.monotonicMs() + maxSettleMs;
    let seen: number;
    do {
      seen = this.#count;
      await this.#clock.sleep(settleMs, signal);
    } while (seen !== this.#count && this.#clock.monotonicMs() < deadlineMs);
  }
}
