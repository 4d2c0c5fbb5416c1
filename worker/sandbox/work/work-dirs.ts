/**
 * Makes work directories ahead of need, removes used ones in the background, and sweeps what dead
 * workers left: directories and processes.
 */
import { execFile } from "node:child_process";
import { chmod, mkdir, opendir, rename } from "node:fs/promises";
import { basename, join } from "node:path";
import { promisify } from "node:util";
import { backoffDelays } from "../../support/backoff.ts";
import type { Clock } from "../../support/clock.ts";
import type { NewId } from "../../support/ids.ts";
import { endOrphans, ownerTag } from "../orphans.ts";
import { SandboxError } from "../sandbox.ts";
import { type LivenessSocket, isInUse, openLivenessSocket } from "./liveness.ts";
import { TreeRemover } from "./tree-remover.ts";
import { passable, prepareWorkBase } from "./work-base.ts";
import { OpenWorkDir, type WorkDir, openWorkDirHandles, workDirNames } from "./work-dir.ts";

const run = promisify(execFile);

/** Directories made at once: to start a process costs as much as some dozen of them. */
const batchSize = 32;
/** Removals that may be under way before a new call waits for one of them. */
const maxRemovals = 64;
/** Milliseconds between two attempts to remove a tree that somebody still fills: they double. */
const retryMs = { baseMs: 100, capMs: 60_000, random: () => 1 } as const;
/** Milliseconds that a batch may take. */
const batchTimeoutMs = 60_000;
/**
 * Makes a batch: directory of the worker, owner or nothing, names. Node has no mkfifo(3), and every
 * other of these calls would cost its event loop more than it costs this program.
 */
const makeBatch = `
set -e
umask 077
cd -- "$1"
owner=$2
shift 2
for name in "$@"; do
  inner="$inner $name/${workDirNames.input} $name/${workDirNames.output}"
  pipes="$pipes $name/${workDirNames.status}"
done
mkdir -- "$@" $inner
mkfifo -- $pipes
[ -z "$owner" ] || chown -R -- "$owner:$owner" "$@"
`;
/**
 * Names of workers' own directories; a sweep touches nothing else in a directory that may be
 * shared.
 */
const workerPrefix = "worker-";
const workerName = /^worker-[0-9a-f]{24}$/;

/** Options of WorkDirs. */
export interface WorkDirsOptions {
  /**
   * Directory that holds the work directories of every worker on this host (`SANDBOX_WORK_DIR`).
   */
  readonly base: string;
  /** Host uid and gid of the sandboxes, or undefined when they run as the worker's own. */
  readonly ownerId: number | undefined;
  readonly newId: NewId;
  readonly clock: Pick<Clock, "sleep">;
  /** Told once of a tree that could not be removed at once; nothing else fails because of it. */
  onRemoveFailed(error: unknown): void;
}

/** A directory that work directories lie in; see `WorkDirs.openParent`. */
export interface WorkDirParent extends Disposable {
  readonly path: string;
}

/**
 * The work directories of one worker, below `base/<own id>/`. A listening socket in that directory
 * marks it as in use: the kernel closes it with the process, whatever ended that, and also across
 * containers that share the volume.
 */
export class WorkDirs implements AsyncDisposable {
  readonly #options: WorkDirsOptions;
  /** The worker's own directory, on the host; the sandbox's uid can pass it. */
  readonly root: string;
  readonly #liveness: LivenessSocket;
  readonly #remover: TreeRemover;
  readonly #ready: string[] = [];
  readonly #removals = new Set<Promise<void>>();
  /** Removals that have failed and are tried again, for which no call waits. */
  readonly #retries = new Set<Promise<void>>();
  readonly #closing = new AbortController();
  #making: Promise<void> | undefined;

  private constructor(
    options: WorkDirsOptions,
    root: string,
    liveness: LivenessSocket,
    remover: TreeRemover,
  ) {
    this.#options = options;
    this.root = root;
    this.#liveness = liveness;
    this.#remover = remover;
  }

  /** What every process of this worker's sandboxes has to bear, for the sweep of a later worker. */
  get ownerTag(): string {
    return ownerTag(basename(this.root));
  }

  /**
   * Creates the worker's own directory, sweeps those of dead workers and makes the first batch.
   * Throws SandboxError.
   */
  static async open(options: WorkDirsOptions): Promise<WorkDirs> {
    const remover = new TreeRemover(options.ownerId);
    try {
      await prepareWorkBase(options.base, options.ownerId);
      await sweepWorkers(options.base, remover, options.onRemoveFailed);
      return await WorkDirs.#openRoot(options, remover);
    } catch (error) {
      throw new SandboxError(`cannot use the work directory ${options.base}`, {
        cause: error,
        setting: "workDir",
      });
    }
  }

  static async #openRoot(options: WorkDirsOptions, remover: TreeRemover): Promise<WorkDirs> {
    const root = join(options.base, workerPrefix + options.newId());
    await mkdir(root, { mode: passable });
    let workDirs: WorkDirs | undefined;
    try {
      // mkdir's mode is subject to the umask.
      await chmod(root, passable);
      workDirs = new WorkDirs(options, root, await openLivenessSocket(root), remover);
      await workDirs.#make();
      return workDirs;
    } catch (error) {
      await (workDirs?.[Symbol.asyncDispose]() ?? remover.remove(root));
      throw error;
    }
  }

  /**
   * A directory of the worker's that sandboxes can pass, for work directories of some kind. Its
   * owner disposes them first.
   */
  async openParent(): Promise<WorkDirParent> {
    const path = join(this.root, this.#options.newId());
    try {
      await mkdir(path, { mode: passable });
      // mkdir's mode is subject to the umask.
      await chmod(path, passable);
    } catch (error) {
      throw new SandboxError(`cannot make the directory ${path}`, { cause: error });
    }
    // What lay in it may still be on its way out.
    return { path, [Symbol.dispose]: () => this.#removeLater(path, Promise.all(this.#removals)) };
  }

  /**
   * A new, empty work directory. The caller owns it. Throws SandboxError.
   *
   * @param parent where it shall lie, or undefined for the worker's own directory
   */
  async take(parent?: WorkDirParent): Promise<WorkDir> {
    if (this.#removals.size >= maxRemovals) await Promise.race(this.#removals);
    while (this.#ready.length === 0) await this.#make();
    const made = this.#ready.pop();
    if (made === undefined) return this.take(parent);
    if (this.#ready.length < batchSize / 2) void this.#make().catch(() => undefined);
    const path = join(parent?.path ?? this.root, basename(made));
    let present = made;
    try {
      if (path !== made) await rename(made, path);
      present = path;
      const handles = await openWorkDirHandles(path, this.#options.ownerId);
      return new OpenWorkDir(path, handles, this.#options.ownerId, (used, closed) =>
        this.#removeLater(used, closed),
      );
    } catch (error) {
      this.#removeLater(present);
      throw new SandboxError(`cannot open the work directory ${path}`, { cause: error });
    }
  }

  /** Waits for removals under way, then removes the worker's own directory. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#making?.catch(() => undefined);
    await Promise.all(this.#removals);
    this.#closing.abort();
    await Promise.all(this.#retries);
    await this.#liveness[Symbol.asyncDispose]();
    await this.#remover
      .remove(this.root)
      .catch((error: unknown) => this.#options.onRemoveFailed(error));
  }

  /** One batch at a time, whoever asks. */
  #make(): Promise<void> {
    this.#making ??= this.#makeBatch().finally(() => (this.#making = undefined));
    return this.#making;
  }

  async #makeBatch(): Promise<void> {
    const names = Array.from({ length: batchSize }, () => this.#options.newId());
    const owner = String(this.#options.ownerId ?? "");
    try {
      await run("/bin/sh", ["-c", makeBatch, "sh", this.root, owner, ...names], {
        env: { PATH: "/usr/bin:/bin" },
        timeout: batchTimeoutMs,
      });
    } catch (error) {
      throw new SandboxError("cannot make work directories", { cause: error });
    }
    this.#ready.push(...names.map((name) => join(this.root, name)));
  }

  #removeLater(path: string, before: Promise<unknown> = Promise.resolve()): void {
    const removal = before
      .then(() => this.#remover.remove(path))
      .catch((error: unknown) => {
        this.#options.onRemoveFailed(error);
        this.#removeInTheEnd(path);
      })
      .finally(() => this.#removals.delete(removal));
    this.#removals.add(removal);
  }

  /**
   * Tries until it is gone: who got a descriptor of a directory may fill it as long as he lives.
   * What is still there when the worker's own directory is removed goes with that, or by the sweep
   * of a later worker.
   */
  #removeInTheEnd(path: string): void {
    const retry = this.#retry(path).finally(() => this.#retries.delete(retry));
    this.#retries.add(retry);
  }

  async #retry(path: string): Promise<void> {
    const { signal } = this.#closing;
    for (const pauseMs of backoffDelays(retryMs)) {
      await this.#options.clock.sleep(pauseMs, signal).catch(() => undefined);
      if (signal.aborted) return;
      const isGone = await this.#remover.remove(path).then(
        () => true,
        () => false,
      );
      if (isGone) return;
    }
  }
}

/**
 * Ends the sandboxes of workers that are gone, and removes their directories in `base`. Rejects
 * when it cannot be listed.
 */
export async function sweepWorkers(
  base: string,
  remover: TreeRemover,
  onRemoveFailed: (error: unknown) => void,
): Promise<void> {
  for await (const entry of await opendir(base)) {
    if (!entry.isDirectory() || !workerName.test(entry.name)) continue;
    const path = join(base, entry.name);
    if (await isInUse(path)) continue;
    await endOrphans(ownerTag(entry.name))
      .then(() => remover.remove(path))
      .catch(onRemoveFailed);
  }
}
