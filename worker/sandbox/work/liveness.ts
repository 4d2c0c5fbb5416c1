/**
 * Tells a directory that somebody uses from one that a dead process has left: by a listening socket
 * in it, which the kernel closes with the process, whatever ended that, and also across containers
 * that share the volume.
 */
import { constants } from "node:fs";
import { type FileHandle, open, stat } from "node:fs/promises";
import { createConnection, createServer } from "node:net";

/** Name of the socket. */
const aliveName = "alive";
/**
 * Age in milliseconds under which a directory without a socket belongs to a process that is just
 * starting.
 */
const startingMs = 60_000;

/** Whether the process that made a directory lives, or has only just made it. */
export async function isInUse(path: string): Promise<boolean> {
  const answer = await probe(path).catch(stateAfter);
  if (answer !== "absent") return answer === "alive";
  const stats = await stat(path).catch(() => undefined);
  return stats !== undefined && Date.now() - stats.mtimeMs < startingMs;
}

/**
 * What a failure says. Anything but a clear no, such as a full backlog or a permission, is a live
 * worker.
 */
function stateAfter(error: unknown): "alive" | "dead" | "absent" {
  switch ((error as NodeJS.ErrnoException).code) {
    case "ECONNREFUSED":
      return "dead";
    case "ENOENT":
    case "ENOTSOCK":
      return "absent";
    default:
      return "alive";
  }
}

/**
 * Asks the socket of a worker's directory whether somebody listens; rejects when nobody can be
 * asked.
 */
async function probe(directory: string): Promise<"alive"> {
  await using handle = await openDirectory(directory);
  return await new Promise((resolve, reject) => {
    const socket = createConnection(socketIn(handle));
    socket.once("error", reject);
    socket.once("connect", () => {
      socket.destroy();
      resolve("alive");
    });
  });
}

/** A listening socket in a directory. Disposing it says that nobody uses the directory any more. */
export type LivenessSocket = AsyncDisposable;

/**
 * Shows in a directory that this process lives, until that ends or disposes it. Rejects with the
 * system's error.
 */
export async function openLivenessSocket(root: string): Promise<LivenessSocket> {
  // The descriptor stays open as long as the server: closing the server unlinks the path that goes
  // through it.
  const handle = await openDirectory(root);
  const server = createServer((socket) => socket.destroy());
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(socketIn(handle), resolve);
  });
  server.unref();
  return {
    async [Symbol.asyncDispose]() {
      await new Promise((resolve) => server.close(resolve));
      await handle.close();
    },
  };
}

async function openDirectory(path: string): Promise<FileHandle> {
  return open(path, constants.O_RDONLY | constants.O_DIRECTORY);
}

/**
 * The path of a socket may have 107 bytes only (unix(7)); through a descriptor any directory fits.
 */
function socketIn(directory: FileHandle): string {
  return `/proc/self/fd/${directory.fd}/${aliveName}`;
}
