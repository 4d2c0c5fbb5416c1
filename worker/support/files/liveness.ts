/**
 * Liveness sockets: a process listens on a socket in each of its directories. The kernel closes the
 * socket with the process, so that a sweep finds dead owners, across containers too.
 */
import { constants } from "node:fs";
import { type FileHandle, open, stat } from "node:fs/promises";
import { createConnection, createServer } from "node:net";

/** Name of the socket. */
const aliveName = "alive";
/** A younger directory without a socket belongs to a starting process; milliseconds. */
const startingMs = 60_000;

/** Whether the owner of a directory is alive, or has just created it. */
export async function isInUse(path: string): Promise<boolean> {
  const answer = await probe(path).catch(stateAfter);
  if (answer !== "absent") return answer === "alive";
  return isStarting(path);
}

/** Whether a directory is so young that its owner may not listen yet. */
export async function isStarting(path: string): Promise<boolean> {
  const stats = await stat(path).catch(() => undefined);
  return stats !== undefined && Date.now() - stats.mtimeMs < startingMs;
}

/** The state after a failed probe. An unclear error, such as a full backlog, means alive. */
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

/** Connects to the socket in a directory. Rejects with the system's error. */
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

/** A listening socket in a directory. Disposing releases the directory. */
export type LivenessSocket = AsyncDisposable;

/** Listens in a directory until this process ends. Rejects with the system's error. */
export async function openLivenessSocket(root: string): Promise<LivenessSocket> {
  // Stays open as long as the server: closing the server unlinks a path through the descriptor.
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

/** A socket's path has at most 107 bytes (unix(7)); through a descriptor any directory fits. */
function socketIn(directory: FileHandle): string {
  return `/proc/self/fd/${directory.fd}/${aliveName}`;
}
