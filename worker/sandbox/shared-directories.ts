/**
 * Makes directories of the host mountable for sandboxes that run as another user than the worker.
 *
 * With a sandbox uid of its own, bubblewrap can bind only what that uid can reach; below a private
 * directory (mode 0700) that is nothing. Such directories are copied to a place it can reach, and
 * copied again when they changed.
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

/** Milliseconds a copy may take; an interpreter has some hundred megabytes. */
const copyTimeoutMs = 300_000;
/** Milliseconds for which a directory that others could read counts as one that they can. */
const recheckMs = 1_000;
/**
 * Pause after a look in the background, in lengths of that look: a large tree is looked at less
 * often.
 */
const pausePerCheck = 9;

/** One copy, with the calls that use it. */
interface Copy {
  readonly path: string;
  readonly fingerprint: string;
  users: number;
  isCurrent: boolean;
}

/**
 * A look that has not started yet; whoever asks until then shares it, since it will see what was
 * written before.
 */
interface QueuedCheck {
  /** Calls that will use the copy that it finds or makes. */
  askers: number;
}

/** A directory that was asked for. */
interface Source {
  readonly directory: string;
  /** As what sandboxes mount it; undefined until it was looked at. */
  form: Copy | "reachable" | undefined;
  /** When a reachable directory is to be looked at again, on the monotonic clock. */
  recheckAtMs: number;
  /** The last look that was asked for, be it waiting, under way or done: looks take turns. */
  lastCheck: Promise<Copy | undefined>;
  queuedCheck: QueuedCheck | undefined;
}

/**
 * Directories as sandboxes can mount them. Its owner disposes it after the last sandbox is gone.
 */
export class SharedDirectories implements AsyncDisposable {
  readonly #base: string;
  readonly #isForeign: boolean;
  readonly #newId: NewId;
  readonly #clock: Pick<Clock, "monotonicMs">;
  readonly #remover = new TreeRemover();
  readonly #sources = new Map<string, Source>();

  /**
   * @param base directory for copies; the sandbox's uid can pass it
   * @param uid host uid of sandboxes, or undefined when it is the worker's own, which reaches
   *   everything it needs
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
   * A source to mount for `directory`, which may also be a file, with its present content. The
   * caller disposes it after the sandbox is gone. A directory that sandboxes could reach when it
   * was last looked at is given without another look; when that was a while ago, one is made for
   * the calls to come.
   */
  async share(directory: string): Promise<SharedDirectory> {
    if (!this.#isForeign) return asItIs(directory);
    const source = this.#sourceOf(directory);
    if (source.form === "reachable") {
      this.#recheck(source);
      return asItIs(directory);
    }
    this.#requestCheck(source).askers++;
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

  /** Has a reachable directory looked at in the background when its time has come. */
  #recheck(source: Source): void {
    if (this.#clock.monotonicMs() < source.recheckAtMs) return;
    // The end of the look sets the time of the next.
    source.recheckAtMs = Infinity;
    this.#requestCheck(source);
    // Calls still get the directory as it is: when it cannot be looked at, their sandboxes say why.
    source.lastCheck.catch(() => undefined);
  }

  /**
   * The look that begins when the one under way is over, which may be at once; `lastCheck` is its
   * result.
   */
  #requestCheck(source: Source): QueuedCheck {
    if (source.queuedCheck !== undefined) return source.queuedCheck;
    const check: QueuedCheck = { askers: 0 };
    source.queuedCheck = check;
    source.lastCheck = source.lastCheck
      .catch(() => undefined)
      .then(async () => {
        source.queuedCheck = undefined;
        const copy = await this.#check(source);
        if (copy !== undefined) copy.users += check.askers;
        return copy;
      });
    return check;
  }

  /** The current copy; undefined when none is needed. */
  async #check(source: Source): Promise<Copy | undefined> {
    const beganMs = this.#clock.monotonicMs();
    try {
      // A link is mounted, and so has to be looked at and copied, as what it leads to.
      const target = await realpath(source.directory);
      const tree = await examineTree(target);
      if (tree.isReadable && (await firstPrivateDirectory(target)) === undefined) {
        await this.#changeForm(source, "reachable");
        return undefined;
      }
      // From now on calls wait for the copy.
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
