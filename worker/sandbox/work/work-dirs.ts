/**
 * Creates work directories in batches, removes used ones in the background, and sweeps directories
 * and sandboxes of dead workers.
 */
import { execFile } from "node:child_process";
import { chmod, mkdir, rename } from "node:fs/promises";
import { basename, join } from "node:path";
import { promisify } from "node:util";
import { backoffDelays } from "../../support/backoff.ts";
import type { Clock } from "../../support/clock.ts";
import { FileCopier } from "../../support/files/copy-file.ts";
import type { NewId } from "../../support/ids.ts";
import { ownerTag } from "../orphans.ts";
import { SandboxError } from "../sandbox.ts";
import { type LivenessSocket, openLivenessSocket } from "../../support/files/liveness.ts";
import { sweepWorkers, workerPrefix } from "./sweep-workers.ts";
import { TreeRemover } from "./tree-remover.ts";
import { passable, prepareWorkBase } from "./work-base.ts";
import { OpenWorkDir, type WorkDir, openWorkDirHandles, workDirNames } from "./work-dir.ts";

const run = promisify(execFile);

/** Directories of a batch: starting a process costs as much as some dozen of them. */
const batchSize = 32;
/** Running removals until a new call waits for one of them. */
const maxRemovals = 64;
/** Milliseconds between two attempts to remove a tree that a process still fills. */
const retryMs = { baseMs: 100, capMs: 60_000, random: () => 1 } as const;
/** Time limit of a batch in milliseconds. */
const batchTimeoutMs = 60_000;
/**
 * Creates a batch. Arguments: the worker's directory, the owner or nothing, names. Node has no
 * mkfifo(3), and the other calls would cost its event loop more.
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

/** Options of WorkDirs. */
export interface WorkDirsOptions {
  /** Base of the work directories of all workers on this host (`SANDBOX_WORK_DIR`). */
  readonly base: string;
  /** Host uid and gid of the sandboxes, or undefined when they run as the worker's own. */
  readonly ownerId: number | undefined;
  readonly newId: NewId;
  readonly clock: Pick<Clock, "sleep">;
  /** Receives the first failure to remove a tree; its removal is retried. */
  onRemoveFailed(error: unknown): void;
}

/** A parent of work directories; see `WorkDirs.openParent`. */
export interface WorkDirParent extends Disposable {
  readonly path: string;
}

/** What a work directory is taken for. */
export interface TakeOptions {
  readonly parent?: WorkDirParent | undefined;
  readonly bindsShared?: boolean;
}

/** The work directories of one worker, below `base/worker-<id>/` with its liveness socket. */
export class WorkDirs implements AsyncDisposable {
  readonly #options: WorkDirsOptions;
  /** The worker's directory on the host; the sandboxes' uid can pass it. */
  readonly root: string;
  readonly #liveness: LivenessSocket;
  readonly #remover: TreeRemover;
  readonly #ready: string[] = [];
  readonly #copier = new FileCopier();
  readonly #removals = new Set<Promise<void>>();
  /** Retried removals, for which no call waits. */
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

  /** Owner tag of this worker's sandboxes, for the sweep of a later worker. */
  get ownerTag(): string {
    return ownerTag(basename(this.root));
  }

  /** Sweeps dead workers, and creates this one's directory and a batch. Throws SandboxError. */
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

  /** Creates a parent that sandboxes can pass. Its owner disposes the work directories first. */
  async openParent(): Promise<WorkDirParent> {
    const path = join(this.root, this.#options.newId());
    try {
      await mkdir(path, { mode: passable });
      // mkdir's mode is subject to the umask.
      await chmod(path, passable);
    } catch (error) {
      throw new SandboxError(`cannot make the directory ${path}`, { cause: error });
    }
    // Its work directories may still be under removal.
    return { path, [Symbol.dispose]: () => this.#removeLater(path, Promise.all(this.#removals)) };
  }

  /**
   * A new, empty work directory. The caller owns it. Throws SandboxError.
   *
   * @param options its parent is the worker's own directory by default; see `InputsOptions`
   */
  async take({ parent, bindsShared = false }: TakeOptions = {}): Promise<WorkDir> {
    if (this.#removals.size >= maxRemovals) await Promise.race(this.#removals);
    while (this.#ready.length === 0) await this.#make();
    const made = this.#ready.pop();
    if (made === undefined) return this.take({ parent, bindsShared });
    if (this.#ready.length < batchSize / 2) void this.#make().catch(() => undefined);
    const path = join(parent?.path ?? this.root, basename(made));
    let present = made;
    try {
      if (path !== made) await rename(made, path);
      present = path;
      const handles = await openWorkDirHandles(path);
      return new OpenWorkDir(handles, {
        path,
        ownerId: this.#options.ownerId,
        copier: this.#copier,
        bindsShared,
        remove: (used, closed) => this.#removeLater(used, closed),
      });
    } catch (error) {
      this.#removeLater(present);
      throw new SandboxError(`cannot open the work directory ${path}`, { cause: error });
    }
  }

  /** Waits for running removals, then removes the worker's directory. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#making?.catch(() => undefined);
    await Promise.all(this.#removals);
    this.#closing.abort();
    await Promise.all(this.#retries);
    await this.#liveness[Symbol.asyncDispose]();
    // It has most of a batch.
    await this.#remover
      .removeLarge(this.root)
      .catch((error: unknown) => this.#options.onRemoveFailed(error));
  }

  /** Creates one batch at a time. */
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
   * Retries until the tree is gone: a process with a descriptor may keep filling it. The worker's
   * own removal, or a later sweep, removes the rest.
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
