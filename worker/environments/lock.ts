/**
 * Exclusive locks between processes of this host, which the kernel releases with their owner:
 * flock(1) holds the lock, and ends when the pipe from this process does.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { EnvironmentError } from "./environments.ts";

const program = "/usr/bin/flock";
/** Says that the lock is held, and waits for the end of its input. */
const script = "echo; exec cat > /dev/null";

/**
 * Waits for the lock of a file, which is made where needed and stays. The caller owns the lock.
 * Throws EnvironmentError; rejects with the signal's reason.
 */
export async function lockFile(path: string, signal: AbortSignal): Promise<AsyncDisposable> {
  signal.throwIfAborted();
  const argv = ["--exclusive", "--no-fork", path, "/bin/sh", "-c", script];
  const child = spawn(program, argv, {
    cwd: "/",
    env: {},
    detached: true,
    stdio: ["pipe", "pipe", "ignore"],
  });
  child.stdin.on("error", () => undefined);
  const ended = once(child, "close");
  const failed = ended.then(
    () => "ended" as const,
    (error: unknown) => ({ error }),
  );
  const kill = (): void => void child.kill("SIGKILL");
  signal.addEventListener("abort", kill, { once: true });
  const outcome = await Promise.race([
    once(child.stdout, "data").then(() => "held" as const),
    failed,
  ]);
  signal.removeEventListener("abort", kill);
  if (outcome !== "held") {
    signal.throwIfAborted();
    const cause = typeof outcome === "object" ? outcome.error : undefined;
    throw new EnvironmentError("a lock of the environments cannot be had", { cause });
  }
  return {
    async [Symbol.asyncDispose]() {
      child.stdin.end();
      await failed;
    },
  };
}
