/**
 * Writes the configuration of an OCI container (config.json of the OCI runtime specification 1.0)
 * for a sandbox, as a pure function.
 */
import { sandboxHostName } from "../network/sockets.ts";
import type { Profile } from "../profile.ts";
import type { Rlimit } from "../rlimits.ts";
import { type ReadOnlyMount, type WritableMount, workDirInside } from "../sandbox.ts";

/** Bytes of /dev, which has device files and links only. */
const devBytes = 64 * 1024;

/** The environment of the command that sets the tool's own. */
const outerEnvironment = ["PATH=/usr/bin:/bin"];

/** What tells of the host in a /proc of its own, or acts on it. */
const maskedPaths = [
  ...["/proc/acpi", "/proc/asound", "/proc/interrupts", "/proc/kcore", "/proc/keys"],
  ...["/proc/latency_stats", "/proc/sched_debug", "/proc/scsi", "/proc/timer_list"],
  ...["/proc/timer_stats", "/sys/devices/virtual/powercap", "/sys/firmware"],
];
const readonlyPaths = ["/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"];

/** What differs between two containers. */
export interface SpecOptions {
  readonly profile: Profile;
  /** The empty tree that everything is mounted on. */
  readonly root: string;
  /** The whole command line; see `commandOf`. */
  readonly argv: readonly string[];
  /** uid and gid inside. */
  readonly userId: number;
  readonly rlimits: readonly Rlimit[];
  /** The work directory on the host. */
  readonly workDir: string;
  /** Directories of the host that are no links into /usr, and files of /etc. */
  readonly systemPaths: readonly string[];
  readonly mounts: readonly ReadOnlyMount[];
  readonly writable: readonly WritableMount[];
  /** Limits that the runtime keeps by control groups; undefined where it has none. */
  readonly resources: SpecResources | undefined;
  /** The system-call filter, or undefined where the runtime has a kernel of its own. */
  readonly seccomp: object | undefined;
}

/** What a container's control group bounds. */
export interface SpecResources {
  readonly memoryBytes: number;
  readonly processes: number;
  /** Processors that it may use; empty for all. */
  readonly cpus: readonly number[];
}

/** A mount of a container. */
export interface SpecMount {
  readonly destination: string;
  readonly type: string;
  readonly source: string;
  readonly options: readonly string[];
}

/** The members of config.json that this writer sets. */
export interface OciSpec {
  readonly mounts: readonly SpecMount[];
  readonly [member: string]: unknown;
}

/**
 * The command line of a container's first process. The runtime may add variables and hands its own
 * standard input on: the command gets its environment from env(1), and /dev/null, unless it reads.
 *
 * @param hasInit whether a shell stays as the first process, which the kernel spares signals
 */
export function commandOf(
  argv: readonly string[],
  environment: ReadonlyMap<string, string>,
  { hasStdin, hasInit }: { readonly hasStdin: boolean; readonly hasInit: boolean },
): readonly string[] {
  const input = hasStdin ? "" : " </dev/null";
  // The shell would report the signal that ended the command on the command's own stderr.
  const script = hasInit
    ? `exec 3>&2 2>/dev/null; "$@"${input} 2>&3 3>&-; exit $?`
    : `exec "$@"${input}`;
  const variables = [...environment].map(([name, value]) => `${name}=${value}`);
  return ["/bin/sh", "-c", script, "sh", "/usr/bin/env", "-i", ...variables, ...argv];
}

/** The configuration of a container that has nothing of the host but what `options` names. */
export function ociSpec(options: SpecOptions): OciSpec {
  const { profile, userId, resources, seccomp } = options;
  const capabilities = { bounding: [], effective: [], inheritable: [], permitted: [], ambient: [] };
  return {
    ociVersion: "1.0.2",
    process: {
      terminal: false,
      user: { uid: userId, gid: userId },
      cwd: workDirInside,
      args: options.argv,
      env: outerEnvironment,
      capabilities,
      noNewPrivileges: true,
      rlimits: options.rlimits
        .filter(({ soft }) => soft !== Infinity)
        .map(({ name, soft, hard }) => ({
          type: `RLIMIT_${name.toUpperCase()}`,
          soft,
          hard: Number.isFinite(hard) ? hard : soft,
        })),
    },
    root: { path: options.root, readonly: true },
    hostname: sandboxHostName,
    mounts: [
      { destination: "/proc", type: "proc", source: "proc", options: noPrograms },
      tmpfs("/dev", devBytes, "755", ["nosuid", "noexec"]),
      ...(profile.terminals ? [terminals] : []),
      tmpfs("/dev/shm", profile.limits.tmpBytes, "1777", ["nosuid", "nodev"]),
      tmpfs("/tmp", profile.limits.tmpBytes, "1777", ["nosuid", "nodev"]),
      ...(profile.hasVar
        ? [tmpfs("/var", profile.limits.tmpBytes, "1777", ["nosuid", "nodev"])]
        : []),
      bind("/usr", "/usr", "ro"),
      ...options.systemPaths.map((path) => bind(path, path, "ro")),
      ...options.mounts.map(({ source, target }) => bind(source, target, "ro")),
      ...options.writable.map(({ source, target }) => bind(source, target, "rw")),
      bind(options.workDir, workDirInside, "rw"),
    ],
    linux: {
      namespaces: ["pid", "ipc", "uts", "mount", "network", "cgroup"].map((type) => ({ type })),
      maskedPaths,
      readonlyPaths,
      ...(resources === undefined ? {} : { resources: resourcesOf(resources) }),
      ...(seccomp === undefined ? {} : { seccomp }),
    },
  };
}

const noPrograms = ["nosuid", "noexec", "nodev"];

const terminals: SpecMount = {
  destination: "/dev/pts",
  type: "devpts",
  source: "devpts",
  options: ["nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620"],
};

function tmpfs(
  destination: string,
  bytes: number,
  mode: string,
  options: readonly string[],
): SpecMount {
  const all = [...options, `mode=${mode}`, `size=${bytes}`];
  return { destination, type: "tmpfs", source: "tmpfs", options: all };
}

function bind(source: string, destination: string, access: "ro" | "rw"): SpecMount {
  // A runtime splits options at commas; a path is no option, so it can hold what it likes.
  return { destination, type: "bind", source, options: ["rbind", access, "nosuid", "nodev"] };
}

function resourcesOf({ memoryBytes, processes, cpus }: SpecResources): object {
  return {
    devices: [{ allow: false, access: "rwm" }],
    memory: { limit: memoryBytes, swap: memoryBytes },
    pids: { limit: processes },
    ...(cpus.length === 0 ? {} : { cpu: { cpus: cpus.join(",") } }),
  };
}
