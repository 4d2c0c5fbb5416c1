/**
 * Shares directories of the host with sandboxes that run as another user than the worker.
 *
 * bubblewrap binds only paths that this user can pass, and so none below a private directory (mode
 * 0700). Such a directory is copied to a passable path, again after each change.
 */
import { execFile } from "node:child_process";
import { chmod, mkdir, realpath } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import type { Clock } from "../support/clock.ts";
import type { NewId } from "../support/ids.ts";
import { examineTree } from "./examine-tree.ts";
import { firstPrivateDirectory } from "./path-permissions.ts";
import { SandboxError, type SharedDirectory } from "./sandbox.ts";
import { TreeRemover } from "./work/tree-remover.ts";

const run = promisify(execFile);

/** Time limit of a copy in milliseconds; an interpreter has some hundred megabytes. */
const copyTimeoutMs = 300_000;
/** Milliseconds until a readable directory is checked again. */
const recheckMs = 1_000;
/** Pause after a background check, in durations of that check: large trees are checked less. */
const pausePerCheck = 9;

/** One copy, with the calls that use it. */
interface Copy {
  readonly path: string;
  readonly fingerprint: string;
  users: number;
  isCurrent: boolean;
}

/** A check that has not started; callers share it, since it sees all earlier writes. */
interface QueuedCheck {
  /** Calls that will use its copy. */
  callers: number;
}

/** A shared directory. */
interface Source {
  readonly directory: string;
  /** The mounted form; undefined before the first check. */
  form: Copy | "reachable" | undefined;
  /** Time of the next check of a reachable directory, on the monotonic clock. */
  recheckAtMs: number;
  /** The last requested check, in any state; checks run in sequence. */
  lastCheck: Promise<Copy | undefined>;
  queuedCheck: QueuedCheck | undefined;
}

/** Mountable directories. Its owner disposes it after the last sandbox. */
export class SharedDirectories implements AsyncDisposable {
  readonly #base: string;
  readonly #isForeign: boolean;
  readonly #newId: NewId;
  readonly #clock: Pick<Clock, "monotonicMs">;
  readonly #remover = new TreeRemover();
  readonly #sources = new Map<string, Source>();

  /**
   * @param base directory for copies; the sandboxes' uid can pass it
   * @param uid host uid of sandboxes, or undefined for the worker's own, which needs no copies
   */
  constructor(
    base: string,
    uid: number | undefined,
    newId: NewId,
    clock: Pick<Clock, "monotonicMs">,
  ) {
    this.#base = base;
    this.#isForeign = uid !== undefined;
    this.#newId = newId;
    this.#clock = clock;
  }

  /**
   * A mount source for a directory or file with its present content. The caller disposes it after
   * the sandbox. A reachable directory is returned as it is; a due check runs in the background.
   */
  async share(directory: string): Promise<SharedDirectory> {
    if (!this.#isForeign) return asItIs(directory);
    const source = this.#sourceOf(directory);
    if (source.form === "reachable") {
      this.#recheck(source);
      return asItIs(directory);
    }
    this.#requestCheck(source).callers++;
    const copy = await source.lastCheck.catch((error: unknown) => {
      if (error instanceof SandboxError) throw error;
      throw new SandboxError(`cannot share ${directory}`, { cause: error });
    });
    if (copy === undefined) return asItIs(directory);
    return {
      source: copy.path,
      [Symbol.asyncDispose]: async () => {
        copy.users--;
        await this.#removeUnused(copy);
      },
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.allSettled([...this.#sources.values()].map(({ lastCheck }) => lastCheck));
    await this.#remover.remove(this.#base);
  }

  #sourceOf(directory: string): Source {
    let source = this.#sources.get(directory);
    if (source === undefined) {
      source = {
        directory,
        form: undefined,
        recheckAtMs: Infinity,
        lastCheck: Promise.resolve(undefined),
        queuedCheck: undefined,
      };
      this.#sources.set(directory, source);
    }
    return source;
  }

  /** Checks a reachable directory in the background when a check is due. */
  #recheck(source: Source): void {
    if (this.#clock.monotonicMs() < source.recheckAtMs) return;
    // The end of the check sets the time of the next.
    source.recheckAtMs = Infinity;
    this.#requestCheck(source);
    // Calls still get the directory; their sandboxes report an error of it.
    source.lastCheck.catch(() => undefined);
  }

  /** Queues a check after the running one; `lastCheck` is its result. */
  #requestCheck(source: Source): QueuedCheck {
    if (source.queuedCheck !== undefined) return source.queuedCheck;
    const check: QueuedCheck = { callers: 0 };
    source.queuedCheck = check;
    source.lastCheck = source.lastCheck
      .catch(() => undefined)
      .then(async () => {
        source.queuedCheck = undefined;
        const copy = await this.#check(source);
        if (copy !== undefined) copy.users += check.callers;
        return copy;
      });
    return check;
  }

  /** The current copy; undefined when none is needed. */
  async #check(source: Source): Promise<Copy | undefined> {
    const beganMs = this.#clock.monotonicMs();
    try {
      // A link is mounted as its target.
      const target = await realpath(source.directory);
      const tree = await examineTree(target);
      if (tree.isReadable && (await firstPrivateDirectory(target)) === undefined) {
        await this.#changeForm(source, "reachable");
        return undefined;
      }
      // Later calls wait for the copy.
      if (source.form === "reachable") source.form = undefined;
      if (source.form?.fingerprint === tree.fingerprint) return source.form;
      const path = await this.#copy(target);
      const copy = { path, fingerprint: tree.fingerprint, users: 0, isCurrent: true };
      await this.#changeForm(source, copy);
      return copy;
    } finally {
      const nowMs = this.#clock.monotonicMs();
      source.recheckAtMs = nowMs + Math.max(recheckMs, pausePerCheck * (nowMs - beganMs));
    }
  }

  async #changeForm(source: Source, form: Copy | "reachable"): Promise<void> {
    const former = source.form;
    source.form = form;
    if (former === undefined || former === "reachable") return;
    former.isCurrent = false;
    await this.#removeUnused(former);
  }

  async #copy(directory: string): Promise<string> {
    const path = join(this.#base, this.#newId());
    const options = { env: {}, timeout: copyTimeoutMs };
    try {
      await mkdir(this.#base, { recursive: true });
      // mkdir's mode is subject to the umask.
      await chmod(this.#base, 0o711);
      await run("/usr/bin/cp", ["-a", "--reflink=auto", "--", directory, path], options);
      await run("/usr/bin/chmod", ["-R", "u=rwX,go=rX", "--", path], options);
      return path;
    } catch (error) {
      await this.#remover.remove(path);
      throw new SandboxError(`cannot copy ${directory} to where sandboxes can read it`, {
        cause: error,
      });
    }
  }

  async #removeUnused(copy: Copy): Promise<void> {
    if (!copy.isCurrent && copy.users === 0) await this.#remover.remove(copy.path);
  }
}

function asItIs(source: string): SharedDirectory {
  return { source, [Symbol.asyncDispose]: () => Promise.resolve() };
}
