/**
 * The container of a sandbox, as the engine's API takes it: a pure function.
 */
import type { Limits } from "../../protocol/resource-limits.ts";
import { sandboxHostName } from "../network/sockets.ts";
import type { SystemDirectory } from "../proc/host.ts";
import type { Profile } from "../profile.ts";
import { type HardLimits, fixedLimitNames, rlimitNames, rlimitsFor } from "../rlimits.ts";
import {
  type Launch,
  type ReadOnlyMount,
  type SandboxRequest,
  type WritableMount,
  workDirInside,
} from "../sandbox.ts";

/** The label with the directory of the worker that made a container. */
export const workerLabel = "secure-tool-runtime.worker";

/** Processes of the container's own: the engine's init, which passes signals on. */
export const initProcesses = 1;

const nanoCpusPerCpu = 1e9;

/** Set by the engine, which may do more than the worker. */
const noHardLimits = Object.fromEntries(
  [...rlimitNames, ...fixedLimitNames].map((name) => [name, Infinity]),
) as HardLimits;

/** Of which the engine knows none, or counts the whole host's. */
const limitsByOthers = ["as", "nproc"];

/** Variables that engines add of themselves. */
const addedVariables = ["HOSTNAME", "HOME", "PATH", "TERM", "container"];

/** What a container is made of. */
export interface ContainerOptions {
  readonly request: SandboxRequest;
  readonly launch: Launch;
  readonly limits: Limits;
  /** The work directory on the host. */
  readonly workDir: string;
  readonly imageId: string;
  /** Host uid and gid. */
  readonly uid: number;
  /** The host's processors: an engine refuses a container that may use more. */
  readonly cpus: number;
  readonly systemDirectories: readonly SystemDirectory[];
  /** Files and directories of /etc that are visible. */
  readonly etc: readonly string[];
  /** Value of {@link workerLabel}. */
  readonly worker: string;
}

/** Mount points of tmpfs that a tool can write to; /dev/shm is the engine's own. */
export function memoryDirectories({ hasVar }: Pick<Profile, "hasVar">): readonly string[] {
  return ["/tmp", "/dev/shm", ...(hasVar ? ["/var"] : [])];
}

/** The body of `POST /containers/create`. */
export function containerOf(options: ContainerOptions): object {
  const { request, launch, limits, imageId, uid, cpus, worker } = options;
  const { profile, environment, devices } = request;
  const hasStdin = launch.hasStdin ?? false;
  return {
    Image: imageId,
    Cmd: [...prefixOf(request, limits), ...launch.argv],
    Env: Array.from(environment, ([name, value]) => `${name}=${value}`),
    User: `${uid}:${uid}`,
    WorkingDir: workDirInside,
    Hostname: sandboxHostName,
    Labels: { [workerLabel]: worker },
    NetworkDisabled: true,
    AttachStdin: hasStdin,
    AttachStdout: true,
    AttachStderr: true,
    OpenStdin: hasStdin,
    StdinOnce: hasStdin,
    HostConfig: {
      Init: true,
      NetworkMode: "none",
      IpcMode: "private",
      CgroupnsMode: "private",
      CapDrop: ["ALL"],
      SecurityOpt: ["no-new-privileges"],
      ReadonlyRootfs: true,
      LogConfig: { Type: "none" },
      Memory: limits.memoryBytes,
      MemorySwap: limits.memoryBytes,
      PidsLimit: limits.processes + initProcesses,
      NanoCpus: Math.min(limits.cpus, cpus) * nanoCpusPerCpu,
      Ulimits: ulimitsOf(limits),
      ShmSize: limits.tmpBytes,
      Tmpfs: tmpfsOf(profile, limits),
      Mounts: mountsOf(options),
      Devices: devices.map(({ source, path }) => ({
        PathOnHost: source,
        PathInContainer: path,
        CgroupPermissions: "rw",
      })),
    },
  };
}

/** The environment stays out of the command line, which other users of the host can read. */
function prefixOf(
  { environment, memoryBound }: SandboxRequest,
  { memoryBytes }: Limits,
): readonly string[] {
  const unset = addedVariables.filter((name) => !environment.has(name));
  const bound =
    memoryBound === "address-space"
      ? ["/usr/bin/prlimit", `--as=${memoryBytes}:${memoryBytes}`, "--"]
      : [];
  return ["/usr/bin/env", ...unset.map((name) => `--unset=${name}`), ...bound];
}

function ulimitsOf(limits: Limits): readonly object[] {
  return rlimitsFor(limits, "resident", noHardLimits)
    .filter(({ name }) => !limitsByOthers.includes(name))
    .map(({ name, soft, hard }) => ({ Name: name, Soft: soft, Hard: hard }));
}

function tmpfsOf(profile: Profile, { tmpBytes }: Limits): Readonly<Record<string, string>> {
  const own = memoryDirectories(profile).filter((directory) => directory !== "/dev/shm");
  const options = `rw,exec,nosuid,nodev,mode=1777,size=${tmpBytes}`;
  return Object.fromEntries(own.map((directory) => [directory, options]));
}

/** Without the mounts below a directory of the host: an engine would make these writable. */
function mountsOf(options: ContainerOptions): readonly object[] {
  const { request, systemDirectories, workDir, etc } = options;
  const own = systemDirectories.filter(({ linkTarget }) => linkTarget === undefined);
  const visible = ["/usr", ...own.map(({ path }) => path), ...etc];
  const readOnly: readonly ReadOnlyMount[] = [
    ...visible.map((path) => ({ source: path, target: path })),
    ...request.mounts,
  ];
  const writable: readonly WritableMount[] = [
    ...(request.writable ?? []),
    { source: workDir, target: workDirInside },
  ];
  const mount = (isReadOnly: boolean) => (place: ReadOnlyMount) => ({
    Type: "bind",
    Source: place.source,
    Target: place.target,
    ReadOnly: isReadOnly,
    BindOptions: { NonRecursive: true, Propagation: "rprivate" },
  });
  return [...readOnly.map(mount(true)), ...writable.map(mount(false))];
}
