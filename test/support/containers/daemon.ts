/**
 * Docker's and containerd's daemons of Debian, unpacked and not installed, with all that they keep
 * in a temporary directory.
 */
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import type { TestContext } from "vitest";
import { abortable } from "../../../worker/support/timeout.ts";
import { isRoot } from "../is-root.ts";
import { slowPlace } from "../sandboxes/quick-place.ts";
import { unpackedPackages } from "./debian-packages.ts";

const run = promisify(execFile);
const startMs = 30_000;
const packages = ["docker.io", "tini", "containerd", "runc", "libseccomp2", "libdevmapper1.02.1"];

/** A daemon that runs. Disposing stops it and its containers, and removes what it kept. */
export interface Daemon extends AsyncDisposable {
  /** Of a client's process. */
  readonly variables: Readonly<Record<string, string>>;
  /** The socket of its API. */
  readonly socket: string;
}

type Skipping = Pick<TestContext, "skip">;

interface Kind {
  readonly command: (directory: string) => readonly string[];
  /** For clients. */
  readonly variables: (directory: string) => Readonly<Record<string, string>>;
  /** Logged when the daemon takes commands. */
  readonly ready: RegExp;
}

const dockerd: Kind = {
  // It changes no network of the machine: containers have none, or the host's.
  command: (directory) => [
    ...["dockerd", "--iptables=false", "--ip-forward=false", "--bridge=none"],
    ...["--host", `unix://${join(directory, "socket")}`, "--pidfile", join(directory, "pid")],
    ...["--data-root", join(directory, "data"), "--exec-root", join(directory, "run")],
  ],
  variables: (directory) => ({
    DOCKER_HOST: `unix://${join(directory, "socket")}`,
    DOCKER_CONFIG: directory,
    DOCKER_BUILDKIT: "1",
  }),
  ready: /API listen on/,
};

const containerd: Kind = {
  command: (directory) => ["containerd", "--config", join(directory, "config.toml")],
  variables: (directory) => ({ CONTAINERD_ADDRESS: join(directory, "socket") }),
  ready: /containerd successfully booted/,
};

/** Docker's. Skips the test where it does not start, with the reason. */
export function openDockerd(context: Skipping): Promise<Daemon> {
  return open(context, dockerd);
}

/** containerd, without Docker. Skips the test where it does not start, with the reason. */
export function openContainerd(context: Skipping): Promise<Daemon> {
  return open(context, containerd);
}

async function open(context: Skipping, kind: Kind): Promise<Daemon> {
  context.skip(!isRoot, "needs root, to start containers");
  const { variables } = await unpackedPackages(context, packages);
  const directory = await mkdtemp(join(slowPlace, "str-engine-"));
  await writeFile(join(directory, "config.toml"), containerdConfig(directory));
  const env = { ...process.env, ...variables, ...kind.variables(directory) };
  const [program = "", ...argv] = kind.command(directory);
  const daemon = spawn(program, argv, { env, stdio: ["ignore", "ignore", "pipe"] });
  let log = "";
  const started = Promise.withResolvers<void>();
  daemon.stderr.setEncoding("utf8").on("data", (text: string) => {
    log += text;
    if (kind.ready.test(log)) started.resolve();
  });
  const fail = (): void => started.reject(new Error(`${program} has ended`));
  daemon.once("error", fail).once("exit", fail);
  const close = async (): Promise<void> => {
    await stopped(daemon);
    await unmountBelow(directory);
    await rm(directory, { recursive: true, force: true });
  };
  try {
    await abortable(started.promise, AbortSignal.timeout(startMs));
  } catch {
    await close();
    context.skip(true, `${program} does not start here: ${log.trim().split("\n").at(-1)}`);
  }
  return {
    variables: { ...variables, ...kind.variables(directory) },
    socket: join(directory, "socket"),
    [Symbol.asyncDispose]: close,
  };
}

async function stopped(daemon: ChildProcess): Promise<void> {
  if (daemon.pid === undefined || daemon.exitCode !== null || daemon.signalCode !== null) return;
  const ended = once(daemon, "exit");
  daemon.kill();
  await ended;
}

/** Docker leaves the network namespace of containers on the host's network mounted. */
async function unmountBelow(directory: string): Promise<void> {
  for (const line of (await readFile("/proc/self/mounts", "utf8")).split("\n")) {
    const [, mountPoint = ""] = line.split(" ");
    if (mountPoint.startsWith(`${directory}/`)) await run("umount", [mountPoint]);
  }
}

/** Without the part for Kubernetes, which needs networks. */
function containerdConfig(directory: string): string {
  return `version = 2
root = ${JSON.stringify(join(directory, "data"))}
state = ${JSON.stringify(join(directory, "run"))}
disabled_plugins = ["io.containerd.grpc.v1.cri", "io.containerd.internal.v1.opt"]
[grpc]
address = ${JSON.stringify(join(directory, "socket"))}
`;
}
