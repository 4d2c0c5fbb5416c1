/**
 * Canaries on this host: the targets of attacks, made for one run and removed after it.
 */
import { randomBytes } from "node:crypto";
import { type Socket as DatagramSocket, createSocket } from "node:dgram";
import { getServers } from "node:dns";
import { chmod, mkdir, readlink, writeFile } from "node:fs/promises";
import { type Server as HttpServer, createServer as createHttpServer } from "node:http";
import {
  type AddressInfo,
  type ListenOptions,
  type Server,
  type Socket,
  createServer,
  isIP,
} from "node:net";
import { join } from "node:path";
import { headersTimeoutMs } from "../../egress/http-server.ts";
import { maxConnectionsInAll } from "../../egress/tcp.ts";
import { SandboxError } from "../../sandbox/sandbox.ts";
import { type Subprocess, startSubprocess } from "../../sandbox/subprocess.ts";
import { ScratchDir } from "../../sandbox/work/scratch-dirs.ts";
import type { Target } from "./attack.ts";

/** Address of the cloud's metadata service. */
const metadataAddress = "169.254.169.254";
/** The name of this host for tools with a list; it resolves anywhere. */
const listedName = "localhost";
/** A name that resolves nowhere: RFC 6761, section 6.4. */
const unlistedName = "str-attack.invalid";
const rebindingName = `rebinding.${unlistedName}`;
const metadataName = `metadata.${unlistedName}`;
/**
 * The addresses that the attacked worker finds of these names: of the first, one of AS112, which
 * answers for names that should not be asked for (RFC 7534), and this host's own.
 */
export const foundAddresses: ReadonlyMap<string, readonly string[]> = new Map([
  [rebindingName, ["2620:4f:8000::1", "127.0.0.1"]],
  [metadataName, [metadataAddress]],
]);
/** Connections at once for tools with a list; attacks make a few times as many. */
const maxConnections = 8;
/** Bytes and milliseconds of a question to the listed service. */
const maxQuestion = { bytes: 16 * 1024, ms: 10_000 };
/** Milliseconds in which further requests of a connection count for the first. */
const furtherRequestsMs = 50;
/** A free port of the host's own. */
const onLoopback = { host: "127.0.0.1", port: 0 };
/** Name of the planted variable. */
const variable = "STR_ATTACK_TOKEN";

/** The canaries of one run. Disposing removes them. */
export interface Canaries extends AsyncDisposable {
  readonly token: string;
  readonly variable: string;
  /** A directory that every user of the host can read. */
  readonly directory: string;
  readonly target: Omit<Target, "limits" | "round" | "workBase">;
}

/**
 * Plants all canaries.
 *
 * @param bases directories to plant in; the first writable one is taken. Every user can pass them.
 *   Not `/tmp`: each sandbox has its own, which would hide a leak.
 * @param uid host uid of the sandboxes, or undefined for the worker's own
 */
export async function plantCanaries(
  bases: readonly string[],
  uid: number | undefined,
): Promise<Canaries> {
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
  const loopback = planted.use(await answer(token, onLoopback));
  const listed = planted.use(await answerByName(token));
  const unlisted = planted.use(await answer(token, onLoopback));
  const datagrams = await answerDatagrams(token);
  planted.defer(() => void datagrams.close());
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
      listedPort: (listed.address() as AddressInfo).port,
      datagramPort: datagrams.address().port,
      listedName,
      unlistedName,
      rebindingName,
      metadataName,
      unlistedPort: (unlisted.address() as AddressInfo).port,
      maxConnections,
      maxConnectionsInAll,
      headerSeconds: headersTimeoutMs / 1_000,
      metadataAddress,
      nameServers: getServers().filter((server) => isIP(server) !== 0),
      socketPath,
      abstractSocket,
      namespaces: await ownNamespaces(),
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

/** The worker's namespaces of the kinds that no sandbox shares. */
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

/** A shell that holds the token until the other end of its descriptor 3 is closed. */
function startSibling(token: string, uid: number | undefined): Promise<Subprocess> {
  return startSubprocess({
    file: "/bin/sh",
    argv: ["-c", 'secret=$0; read -r line <&3; : "$secret"', token],
    env: { [variable]: token },
    uid,
    hasReport: true,
  });
}

/** A service that answers each connection with the token. */
function answer(token: string, where: ListenOptions): Promise<Server> {
  return listen(where, (socket) => {
    socket.write(token);
    socket.destroySoon();
  });
}

/** A front: what it answers depends on the name that it is asked for. */
function answerByName(token: string): Promise<Server> {
  const front = createFront(token);
  return listen(onLoopback, (socket) => {
    let question = "";
    socket.setTimeout(maxQuestion.ms, () => socket.destroy());
    socket.on("data", function ask(chunk: Buffer) {
      if (question === "" && /^[A-Z]+ /.test(chunk.toString("latin1"))) {
        socket.off("data", ask).pause().unshift(chunk);
        front.emit("connection", socket);
        return void socket.resume();
      }
      question += chunk.toString("latin1");
      const isUnlisted = question.includes(unlistedName);
      if (isUnlisted || question.includes(listedName))
        socket.end(isUnlisted ? token : "listed", () => socket.destroy());
      else if (question.length > maxQuestion.bytes) socket.destroy();
    });
  });
}

/**
 * The same by HTTP, read as leniently as some hosts do; it never listens. What any request of a
 * connection asks for counts. It redirects to the parameter `to`.
 */
function createFront(token: string): HttpServer {
  const asked = new WeakMap<Socket, string>();
  const options = { insecureHTTPParser: true, requireHostHeader: false };
  return createHttpServer(options, ({ socket, url = "", rawHeaders }, response) => {
    const hosts = rawHeaders.filter((_, index) => /^host$/i.test(rawHeaders[index - 1] ?? ""));
    asked.set(socket, [asked.get(socket), url, ...hosts].join(" "));
    const [, to] = /\?to=(.*)$/.exec(url) ?? [];
    if (to !== undefined) return void response.writeHead(302, { Location: to }).end();
    setTimeout(() => {
      response.end(asked.get(socket)?.includes(unlistedName) === true ? token : "listed");
    }, furtherRequestsMs);
  });
}

/** A service that answers each datagram with the token; its owner closes it. */
async function answerDatagrams(token: string): Promise<DatagramSocket> {
  const socket = createSocket("udp4");
  socket.on("message", (_, { port, address }) => socket.send(token, port, address));
  await new Promise<void>((resolve, reject) => {
    socket.once("error", reject);
    socket.bind({ ...onLoopback, address: onLoopback.host }, resolve);
  });
  return socket;
}

async function listen(where: ListenOptions, serve: (socket: Socket) => void): Promise<Server> {
  const server = createServer((socket) => {
    socket.on("error", () => socket.destroy());
    serve(socket);
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(where, resolve);
  });
  return server;
}
