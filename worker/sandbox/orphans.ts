/**
 * Ends sandboxes of dead workers.
 *
 * bubblewrap dies with its parent, and the sandbox's first process with bubblewrap, but only some
 * milliseconds after their start. A worker that is killed meanwhile leaves an orphan. So each
 * bubblewrap has its worker's owner tag on the command line, and so has each process of gVisor, in
 * the paths of its files. A guard beside the worker outlives it,
 * and kills the processes with the tag.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import type { Clock } from "../support/clock.ts";
import { SandboxError } from "./sandbox.ts";

/** The shell takes 2 MB, another Node 45. The script needs built-ins and sleep(1). */
const shell = "/bin/sh";

/** Seconds between two scans of all processes. */
const scanSeconds = 0.05;
/** Scans until the guard fails. */
const maxScans = 100;
/** Consecutive scans without a match before a guard ends: the worker's last start may be late. */
const quietScansOfGuard = 10;
/** Least milliseconds between two restarts of a lost guard. */
const restartPauseMs = 10_000;

/** The bubblewrap option before the tag; no variable has such a name. */
const tagOption = "--unsetenv";

/**
 * Waits for the end of its input, which the worker holds open. Then it scans, and kills processes
 * with the tag $1, as an option or as a directory of a path, or a current directory directly in $3,
 * until $2 consecutive scans find none. Reading drops the NULs of command lines.
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
      *"${tagOption}$1"* | *"/$1/"*) quiet=0; kill -KILL "\${process#/proc/}"; continue ;;
    esac
    if [ -n "$3" ] && [ "$process/cwd/.." -ef "$3" ]; then
      quiet=0
      kill -KILL "\${process#/proc/}"
    fi
  done
done
`;

/** Owner tag of a worker: a hash of its directory's name, since command lines are public. */
export function ownerTag(workerName: string): string {
  const digest = createHash("sha256").update(workerName).digest("hex");
  return `str-sandbox-${digest.slice(0, 24)}`;
}

/** The first options of a bubblewrap with this tag. */
export function ownerTagOptions(tag: string): readonly string[] {
  return [tagOption, tag];
}

/**
 * Starts a guard that kills tagged processes after this process is dead, and restarts a lost one.
 * The caller disposes it after the last sandbox. Rejects with SandboxError when none starts.
 *
 * @param onLost called for each lost guard and each failed restart; must not throw
 * @param root also kill processes with a current directory directly in this one
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
      // A disposal during the restart has killed the former guard only.
      if (signal.aborted) this.#child.kill("SIGKILL");
    }
  }

  /** Restarts the guard after a pause; false after a failure or the disposal. */
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

/** Kills the processes with the tag. Rejects when one survives. */
export async function endOrphans(tag: string): Promise<void> {
  const child = await start(tag, 1, "");
  child.stdin?.end();
  if ((await exitCodeOf(child)) !== 0)
    throw new SandboxError("a sandbox of a dead worker cannot be ended");
}

/** Starts the script in a new session, out of reach of a terminal's signals. */
async function start(tag: string, quietScans: number, root: string): Promise<ChildProcess> {
  const child = spawn(shell, ["-c", script, "str-orphans", tag, String(quietScans), root], {
    cwd: "/",
    env: {},
    detached: true,
    stdio: ["pipe", "ignore", "ignore"],
  });
  // The script may die before a write.
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
