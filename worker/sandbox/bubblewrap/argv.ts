/**
 * bubblewrap's options for a sandbox, as a pure function. See bwrap(1).
 */
import { sandboxHostName } from "../network/sockets.ts";
import { type SystemDirectory, baseEtc } from "../proc/host.ts";
import type { Profile } from "../profile.ts";
import { type Device, type ReadOnlyMount, type WritableMount, workDirInside } from "../sandbox.ts";
import type { BoundInput } from "../work/inputs.ts";
import { workDirNames } from "../work/work-dir.ts";

/** uid and gid inside: nobody. */
const insideId = "65534";

/**
 * Not everywhere: default filters of container engines refuse sethostname(2) to users without
 * capabilities.
 */
export const hostName: readonly string[] = ["--hostname", sandboxHostName];

/**
 * How /proc appears inside: a new one, or an empty directory where the host does not allow that.
 */
export type ProcVariant = "fresh" | "empty";

const resolvedRun = "/run/systemd/resolve";

/** What differs between two sandboxes. */
export interface BwrapOptions {
  readonly profile: Profile;
  readonly proc: ProcVariant;
  /** Whether the limit of further user namespaces inside is set to zero. */
  readonly limitsNested: boolean;
  /** Whether the sandbox gets a host name of its own in place of the host's. */
  readonly namesHost: boolean;
  /** /bin, /lib and their kin, as the host has them. */
  readonly systemDirectories: readonly SystemDirectory[];
  /** The work directory on the host. */
  readonly workDir: string;
  readonly mounts: readonly ReadOnlyMount[];
  readonly writable?: readonly WritableMount[] | undefined;
  /** Inputs that are mounted over empty files of the work directory. */
  readonly boundInputs?: readonly BoundInput[];
  readonly devices: readonly Device[];
  readonly environment: ReadonlyMap<string, string>;
  /**
   * For the sandbox of a template: the directory on the host that has the work directories of those
   * that are made from it. They need user namespaces, and a /proc to write in.
   */
  readonly templateDir?: string | undefined;
}

/** Where a template finds what its children need of the worker. They do not see it. */
const templateDirInside = "/sandbox/template";

/** Files of /etc that say how the host finds names; sandboxes with lists have their own. */
const nameServiceEtc = [
  "/etc/resolv.conf",
  "/etc/hosts",
  "/etc/host.conf",
  "/etc/nsswitch.conf",
  "/etc/gai.conf",
];

/** Files of /etc that network programs need. Private keys below /etc/ssl stay outside. */
const networkEtc = [
  "/etc/services",
  "/etc/protocols",
  "/etc/ssl/certs",
  "/etc/ssl/openssl.cnf",
  "/etc/ca-certificates",
  "/etc/pki/tls/certs",
];

/**
 * What `--dev /dev` makes, but for pseudo terminals and for links to what sandboxes do not have.
 */
const devicesWithoutTerminals: readonly string[] = [
  ...["--tmpfs", "/dev"],
  ...["null", "zero", "full", "random", "urandom", "tty"].flatMap((name) => [
    "--dev-bind",
    `/dev/${name}`,
    `/dev/${name}`,
  ]),
  ...["--symlink", "/proc/self/fd", "/dev/fd"],
  ...["stdin", "stdout", "stderr"].flatMap((name, descriptor) => [
    "--symlink",
    `/proc/self/fd/${descriptor}`,
    `/dev/${name}`,
  ]),
];

/**
 * The option list, without the command. It is handed to bubblewrap through `--args FD`, because the
 * sandbox's first process shows bubblewrap's own command line to everything inside.
 *
 * Order matters: a later mount covers an earlier one, and the root becomes read-only last.
 */
export function bwrapOptions(options: BwrapOptions): readonly string[] {
  const { profile, templateDir } = options;
  const size = String(profile.limits.tmpBytes);
  return [
    "--unshare-all",
    ...(profile.network === "host" ? ["--share-net"] : []),
    "--unshare-user",
    ...(options.limitsNested && templateDir === undefined ? ["--disable-userns"] : []),
    ...["--uid", insideId, "--gid", insideId],
    ...["--cap-drop", "ALL"],
    "--new-session",
    "--die-with-parent",
    ...(options.namesHost ? hostName : []),
    "--clearenv",
    ...[...options.environment].flatMap(([name, value]) => ["--setenv", name, value]),
    ...systemOptions(options.systemDirectories),
    ...etc(profile),
    ...(options.proc === "fresh" ? ["--proc", "/proc"] : ["--tmpfs", "/proc"]),
    // In a new one a tool could write the settings of its own namespaces, below /proc/sys.
    ...(templateDir === undefined ? ["--remount-ro", "/proc"] : []),
    // The tool owns the file system of /dev: without the remount it could fill half of the host's
    // memory there.
    ...(profile.terminals ? ["--dev", "/dev"] : devicesWithoutTerminals),
    ...["--size", size, "--tmpfs", "/dev/shm"],
    ...options.devices.flatMap((device) => ["--dev-bind", device.source, device.path]),
    ...["--remount-ro", "/dev"],
    ...["--size", size, "--tmpfs", "/tmp"],
    ...(profile.hasVar ? ["--size", size, "--tmpfs", "/var"] : []),
    ...options.mounts.flatMap((mount) => ["--ro-bind", mount.source, mount.target]),
    ...(options.writable ?? []).flatMap(({ source, target }) => ["--bind", source, target]),
    ...["--bind", options.workDir, workDirInside],
    ...(options.boundInputs ?? []).flatMap(({ name, source }) => [
      ...["--ro-bind", source],
      `${workDirInside}/${workDirNames.input}/${name}`,
    ]),
    ...(templateDir === undefined ? [] : ["--bind", templateDir, templateDirInside]),
    ...["--chdir", workDirInside],
    ...["--remount-ro", "/"],
  ];
}

/**
 * The least that a sandbox can be: namespaces of every kind but the network's, and programs to run.
 * For trials.
 */
export function trialOptions(systemDirectories: readonly SystemDirectory[]): readonly string[] {
  return [
    ...[
      "--unshare-user",
      "--unshare-pid",
      "--unshare-ipc",
      "--unshare-uts",
      "--unshare-cgroup-try",
    ],
    ...["--uid", insideId, "--gid", insideId],
    "--die-with-parent",
    ...systemOptions(systemDirectories),
  ];
}

function systemOptions(systemDirectories: readonly SystemDirectory[]): readonly string[] {
  return [
    ...["--ro-bind", "/usr", "/usr"],
    ...systemDirectories.flatMap(({ path, linkTarget }) =>
      linkTarget === undefined ? ["--ro-bind", path, path] : ["--symlink", linkTarget, path],
    ),
  ];
}

function etc(profile: Profile): readonly string[] {
  if (profile.readsEtc) {
    // /etc/resolv.conf is a link into this directory where systemd-resolved runs. Its socket there
    // answers for the host's network, from whatever namespace it is asked.
    const isHost = profile.network === "host";
    const resolved = isHost ? ["--ro-bind-try", resolvedRun, resolvedRun] : [];
    return ["--ro-bind", "/etc", "/etc", ...resolved];
  }
  const files =
    profile.network === "none"
      ? baseEtc
      : profile.network === "host"
        ? [...baseEtc, ...nameServiceEtc, ...networkEtc]
        : [...baseEtc, ...networkEtc];
  return files.flatMap((file) => ["--ro-bind-try", file, file]);
}
