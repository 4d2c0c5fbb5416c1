/**
 * Ends sandboxes whose worker is dead.
 *
 * bubblewrap is to die with its parent, and the sandbox's first process with bubblewrap. But each
 * asks for that some milliseconds after it was born, and the kernel grants it only from then on; a
 * worker that is killed meanwhile leaves a sandbox that goes on, or a process that waits for ever
 * to be let go. So every bubblewrap bears a mark of its worker on its command line, and a small
 * process beside the worker outlives it and kills whoever bears the mark.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import type { Clock } from "../support/clock.ts";
import { SandboxError } from "./sandbox.ts";

/**
 * The shell takes 2 MB, where another Node would take 45. What it needs is built in, but for
 * sleep(1).
 */
const shell = "/bin/sh";

/** Seconds between two looks at all processes. */
const scanSeconds = 0.05;
/** Looks after which those that are still there are given up. */
const maxScans = 100;
/**
 * Looks in a row that find nobody before a guard leaves: what its worker did last may just be
 * beginning.
 */
const quietScansOfGuard = 10;
/** Least milliseconds between two starts of a guard in place of a lost one. */
const restartPauseMs = 10_000;

/** An option that bubblewrap gets for its word alone: no variable is called like that. */
const tagOption = "--unsetenv";

/**
 * What the shell does: waits for the end of its input, which comes with the worker's. Then it kills
 * whoever bears the mark until it finds nobody, so many times in a row, and exits with 1 when
 * somebody stays. It reads and kills in one breath, so that no other process can have got the
 * number meanwhile. Command lines lose their NULs as they are read. Where nothing bears a mark, who
 * works in a directory of the worker's counts as well.
 */
const script = `
exec 2> /dev/null
trap '' HUP INT TERM
read -r end
scans=0
quiet=0
while [ "$quiet" -lt "$2" ]; do
  [ "$scans" -lt ${maxScans} ] || exit 1
  [ "$scans" -eq 0 ] || sleep ${scanSeconds}
  scans=$((scans + 1))
  quiet=$((quiet + 1))
  for process in /proc/[0-9]*; do
    line=
    read -r line < "$process/cmdline"
    case "$line" in
      *"${tagOption}$1"*) quiet=0; kill -KILL "\${process#/proc/}"; continue ;;
    esac
    if [ -n "$3" ] && [ "$process/cwd/.." -ef "$3" ]; then
      quiet=0
      kill -KILL "\${process#/proc/}"
    fi
  done
done
`;

/**
 * The mark of a worker, by the name of its directory. Everybody on the host can read command lines,
 * so the name cannot be told from it.
 */
export function ownerTag(workerName: string): string {
  const digest = createHash("sha256").update(workerName).digest("hex");
  return `str-sandbox-${digest.slice(0, 24)}`;
}

/** The options by which a bubblewrap bears a mark, to be the first on its command line. */
export function ownerTagOptions(tag: string): readonly string[] {
  return [tagOption, tag];
}

/**
 * Starts the process that kills whoever bears the mark as soon as this process is dead, and another
 * one whenever it ends before. The caller disposes it after its last sandbox is gone. Throws
 * SandboxError when the first one cannot be started.
 *
 * @param onLost told each time that the guard has ended or another one cannot be started; it must
 *   not throw
 * @param root kill, too, whose current directory lies directly in this one
 */
export async function guardOrphans(
  tag: string,
  clock: Pick<Clock, "monotonicMs" | "sleep">,
  onLost: (error: SandboxError) => void,
  root = "",
): Promise<AsyncDisposable> {
  const startOne = (): Promise<ChildProcess> => start(tag, quietScansOfGuard, root);
  return new OrphanGuard(startOne, clock, onLost, await startOne());
}

class OrphanGuard implements AsyncDisposable {
  readonly #startOne: () => Promise<ChildProcess>;
  readonly #clock: Pick<Clock, "monotonicMs" | "sleep">;
  readonly #onLost: (error: SandboxError) => void;
  readonly #stopping = new AbortController();
  readonly #kept: Promise<void>;
  #child: ChildProcess;
  /** On the monotonic clock. */
  #restartedAtMs = -Infinity;

  constructor(
    startOne: () => Promise<ChildProcess>,
    clock: Pick<Clock, "monotonicMs" | "sleep">,
    onLost: (error: SandboxError) => void,
    child: ChildProcess,
  ) {
    this.#startOne = startOne;
    this.#clock = clock;
    this.#onLost = onLost;
    this.#child = child;
    this.#kept = this.#keepOne();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopping.abort();
    this.#child.kill("SIGKILL");
    await this.#kept;
  }

  async #keepOne(): Promise<void> {
    const { signal } = this.#stopping;
    for (;;) {
      await exitCodeOf(this.#child);
      if (signal.aborted) return;
      const { signalCode, exitCode } = this.#child;
      this.#onLost(new SandboxError(`the guard ended with ${signalCode ?? exitCode}`));
      while (!(await this.#restart())) if (signal.aborted) return;
      // It may have been asked to stop while the new one was being started.
      if (signal.aborted) this.#child.kill("SIGKILL");
    }
  }

  /**
   * Starts another one when it is time to. False when that is not possible, or the guard is to
   * stop.
   */
  async #restart(): Promise<boolean> {
    const pauseMs = this.#restartedAtMs + restartPauseMs - this.#clock.monotonicMs();
    try {
      await this.#clock.sleep(Math.max(0, pauseMs), this.#stopping.signal);
      this.#restartedAtMs = this.#clock.monotonicMs();
      this.#child = await this.#startOne();
      return true;
    } catch (error) {
      if (error instanceof SandboxError) this.#onLost(error);
      return false;
    }
  }
}

/** Kills whoever bears the mark, now. Rejects when somebody stays. */
export async function endOrphans(tag: string): Promise<void> {
  const child = await start(tag, 1, "");
  child.stdin?.end();
  if ((await exitCodeOf(child)) !== 0)
    throw new SandboxError("a sandbox of a dead worker cannot be ended");
}

/** In a session of its own, so that what a terminal sends to the worker does not reach it. */
async function start(tag: string, quietScans: number, root: string): Promise<ChildProcess> {
  const child = spawn(shell, ["-c", script, "str-orphans", tag, String(quietScans), root], {
    cwd: "/",
    env: {},
    detached: true,
    stdio: ["pipe", "ignore", "ignore"],
  });
  // It may be killed before it is told anything.
  child.stdin?.on("error", () => undefined);
  try {
    await once(child, "spawn");
  } catch (error) {
    throw new SandboxError(`cannot start ${shell}`, { cause: error });
  }
  return child;
}

async function exitCodeOf(child: ChildProcess): Promise<number | null> {
  if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
  return child.exitCode;
}
