/**
 * What attacks find on this host if a sandbox does not hold: everything of it made for them, and
 * removed afterwards.
 */
import { randomBytes } from "node:crypto";
import { getServers } from "node:dns";
import { chmod, mkdir, readlink, writeFile } from "node:fs/promises";
import { type AddressInfo, type ListenOptions, type Server, createServer, isIP } from "node:net";
import { join } from "node:path";
import { SandboxError } from "../../sandbox/sandbox.ts";
import { type Subprocess, startSubprocess } from "../../sandbox/subprocess.ts";
import { ScratchDir } from "../../sandbox/work/scratch-dirs.ts";
import type { Target } from "./attack.ts";

/** Where clouds tell machines about themselves. */
const metadataAddress = "169.254.169.254";
/** What the planted variable is called. */
const variable = "STR_ATTACK_TOKEN";

/** What is planted on this host. Disposing it removes everything. */
export interface Canaries extends AsyncDisposable {
  readonly token: string;
  readonly variable: string;
  /** A directory that every user of the host can read. */
  readonly directory: string;
  readonly target: Omit<Target, "limits" | "round" | "workBase">;
}

/**
 * Canaries everything.
 *
 * @param bases directories to plant in, of which the first that can be written to is taken: such as
 *   every user of the host can pass, and not `/tmp`, of which every sandbox has its own, so that it
 *   would hide a leak
 * @param uid host uid of the sandboxes, or undefined for the worker's own
 */
export async function plantCanaries(bases: readonly string[], uid: number | undefined): Promise<Canaries> {
  await using planted = new AsyncDisposableStack();
  const token = randomBytes(16).toString("hex");
  const { path: directory } = planted.use(await makeDirectory(bases, uid));

  const secretFile = join(directory, "secret");
  await writeFile(secretFile, token);
  await chmod(secretFile, 0o644);
  const openDirectory = join(directory, "open");
  await mkdir(openDirectory);
  await chmod(openDirectory, 0o777);

  const sibling = await startSibling(token, uid);
  planted.defer(async () => {
    sibling.kill("SIGKILL");
    await sibling.exited;
    sibling.close();
  });
  const socketPath = join(directory, "socket");
  const abstractSocket = `str-attack-${randomBytes(8).toString("hex")}`;
  const loopback = planted.use(await answer(token, { host: "127.0.0.1", port: 0 }));
  planted.use(await answer(token, { path: socketPath }));
  await chmod(socketPath, 0o666);
  planted.use(await answer(token, { path: `\0${abstractSocket}` }));

  const owned = planted.move();
  return {
    token,
    variable,
    directory,
    target: {
      token,
      secretFile,
      openDirectory,
      siblingPid: sibling.pid,
      workerPid: process.pid,
      variable,
      loopbackPort: (loopback.address() as AddressInfo).port,
      metadataAddress,
      nameServers: getServers().filter((server) => isIP(server) !== 0),
      socketPath,
      abstractSocket,
      namespaces: await ownNamespaces(),
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

/** Those that every sandbox has of its own, whatever its profile says of the network. */
async function ownNamespaces(): Promise<Readonly<Record<string, string>>> {
  const kinds = ["user", "mnt", "pid", "ipc", "uts", "cgroup"];
  const names = await Promise.all(
    kinds.map((kind) => readlink(`/proc/self/ns/${kind}`).catch(() => undefined)),
  );
  // A kernel may lack one.
  return Object.fromEntries(
    kinds.flatMap((kind, index) => {
      const name = names[index];
      return name === undefined ? [] : [[kind, name]];
    }),
  );
}

async function makeDirectory(
  bases: readonly string[],
  uid: number | undefined,
): Promise<ScratchDir> {
  const failures: unknown[] = [];
  for (const base of bases) {
    try {
      return await ScratchDir.make("canaries", base, 0o755, uid);
    } catch (error) {
      failures.push(error);
    }
  }
  throw new SandboxError(`no directory to plant anything in: ${bases.join(", ")}`, {
    cause: failures.at(-1),
  });
}

/**
 * A shell that waits until the other end of its descriptor 3 is closed, which happens with this
 * process at the latest.
 */
function startSibling(token: string, uid: number | undefined): Promise<Subprocess> {
  return startSubprocess({
    file: "/bin/sh",
    argv: ["-c", 'secret=$0; read -r line <&3; : "$secret"', token],
    env: { [variable]: token },
    uid,
    hasReport: true,
  });
}

/** A service that says the token to everybody. */
async function answer(token: string, where: ListenOptions): Promise<Server> {
  const server = createServer((socket) => {
    socket.on("error", () => socket.destroy());
    socket.write(token);
    socket.destroySoon();
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(where, resolve);
  });
  return server;
}
