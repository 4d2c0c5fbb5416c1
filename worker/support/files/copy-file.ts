/**
 * Copies open files: large ones in the kernel, as a reflink or by copy_file_range(2).
 *
 * `cat` does both, and an abort can kill it. Node's `copyFile` would block a thread until its end,
 * and for ever where another process cuts the source short.
 */
import { spawn } from "node:child_process";
import { type FileHandle, open } from "node:fs/promises";
import { Semaphore } from "../semaphore.ts";
import { writeFully } from "./write-content.ts";

/** Below this, starting a process takes longer than to read and write; measured on ext4 and XFS. */
export const leastCopyBytes = 4 * 1024 * 1024;

/** Bytes that are read at once of a smaller file. */
const blockBytes = 1024 * 1024;

/** Copies at a time of one copier. */
const maxCopies = 4;

/** Two open regular files. Their owner closes them. */
export interface FileCopy {
  readonly source: FileHandle;
  /** New and empty, and opened for writing. */
  readonly target: FileHandle;
  /** Bytes that the source should have. */
  readonly sizeBytes: number;
}

/** Copies a bounded number of files at a time. */
export class FileCopier {
  /** Callers limit the queue: a worker has `maxTransfers` at a time. */
  readonly #permits = new Semaphore({ capacity: maxCopies, maxWaiting: Infinity });

  /**
   * Copies a source from its first byte on. False when a stream has to, with an empty target: after
   * each failure, whose cause the stream meets again.
   */
  async copy({ source, target, sizeBytes }: FileCopy, signal: AbortSignal): Promise<boolean> {
    using _permit = await this.#permits.acquire(signal);
    const copy = sizeBytes < leastCopyBytes ? copyBlocks : copyInKernel;
    const isCopied = await copy({ source, target, sizeBytes }, signal).catch(() => false);
    signal.throwIfAborted();
    if (isCopied) return true;
    await target.truncate(0);
    return false;
  }
}

async function copyBlocks(
  { source, target, sizeBytes }: FileCopy,
  signal: AbortSignal,
): Promise<boolean> {
  // A byte more, to notice a source that is longer.
  const buffer = Buffer.allocUnsafeSlow(Math.min(sizeBytes + 1, blockBytes));
  for (let copiedBytes = 0; copiedBytes <= sizeBytes;) {
    signal.throwIfAborted();
    const { bytesRead } = await source.read(buffer, 0, buffer.byteLength, copiedBytes);
    if (copiedBytes + bytesRead > sizeBytes) return false;
    await writeFully(target, buffer.subarray(0, bytesRead), copiedBytes);
    copiedBytes += bytesRead;
    // Reads of regular files are short at their end only.
    if (bytesRead < buffer.byteLength) return copiedBytes === sizeBytes;
  }
  return false;
}

async function copyInKernel(
  { source, target, sizeBytes }: FileCopy,
  signal: AbortSignal,
): Promise<boolean> {
  // Opened again, since a child moves the position of each descriptor that it inherits.
  await using from = await open(`/proc/self/fd/${source.fd}`, "r");
  await using to = await open(`/proc/self/fd/${target.fd}`, "r+");
  signal.throwIfAborted();
  // Another process may let the source grow. At a limit the kernel refuses even empty writes.
  const limit = `--fsize=${sizeBytes + 1}`;
  // It ends with a worker that is killed.
  const untilDeath = ["--pdeathsig", "KILL", "--"];
  const argv = [...untilDeath, "/usr/bin/prlimit", limit, "--", "/usr/bin/cat"];
  const child = spawn("/usr/bin/setpriv", argv, {
    cwd: "/",
    env: {},
    detached: true,
    stdio: [from.fd, to.fd, "ignore"],
  });
  const kill = (): void => void child.kill("SIGKILL");
  signal.addEventListener("abort", kill, { once: true });
  try {
    const isDone = await new Promise<boolean>((resolve, reject) => {
      child.once("error", reject);
      child.once("exit", (code) => resolve(code === 0));
    });
    return isDone && (await target.stat()).size === sizeBytes;
  } finally {
    signal.removeEventListener("abort", kill);
  }
}
