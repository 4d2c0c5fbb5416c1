/**
 * Locks between processes of this host, which the kernel releases with their owner:
 * flock(1) holds the lock, and ends when the pipe from this process does.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { EnvironmentError } from "./environments.ts";

const program = "/usr/bin/flock";
/** Says that the lock is held, and waits for the end of its input. */
const script = "echo; exec cat > /dev/null";
/** How flock(1) ends where others hold the lock. */
const conflict = 75;

/**
 * Waits for the lock of a file, which is made where needed and stays. The caller owns the lock.
 * Throws EnvironmentError; rejects with the signal's reason.
 */
export async function lockFile(path: string, signal: AbortSignal): Promise<AsyncDisposable> {
  const lock = await flock(["--exclusive"], path, signal);
  if (lock !== undefined) return lock;
  throw new EnvironmentError("a lock of the environments cannot be had");
}

/**
 * The lock of a file without waiting: undefined where others hold it. Shared ones exclude only an
 * exclusive one. Otherwise as {@link lockFile}.
 */
export function tryLockFile(
  path: string,
  kind: "shared" | "exclusive",
  signal: AbortSignal,
): Promise<AsyncDisposable | undefined> {
  const options = [`--${kind}`, "--nonblock", "--conflict-exit-code", String(conflict)];
  return flock(options, path, signal);
}

async function flock(
  options: readonly string[],
  path: string,
  signal: AbortSignal,
): Promise<AsyncDisposable | undefined> {
  signal.throwIfAborted();
  const argv = [...options, "--no-fork", path, "/bin/sh", "-c", script];
  const child = spawn(program, argv, {
    cwd: "/",
    env: {},
    detached: true,
    stdio: ["pipe", "pipe", "ignore"],
  });
  child.stdin.on("error", () => undefined);
  const ended = once(child, "close").then(
    ([code]: readonly unknown[]) => ({ code }),
    (error: unknown) => ({ error }),
  );
  const kill = (): void => void child.kill("SIGKILL");
  signal.addEventListener("abort", kill, { once: true });
  const outcome = await Promise.race([
    once(child.stdout, "data").then(() => "held" as const),
    ended,
  ]);
  signal.removeEventListener("abort", kill);
  if (outcome === "held") {
    return {
      async [Symbol.asyncDispose]() {
        child.stdin.end();
        await ended;
      },
    };
  }
  signal.throwIfAborted();
  if ("code" in outcome && outcome.code === conflict) return undefined;
  const cause = "error" in outcome ? outcome.error : undefined;
  throw new EnvironmentError("a lock of the environments cannot be had", { cause });
}
