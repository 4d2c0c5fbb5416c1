/**
 * A container as a runtime of the Open Container Initiative is given it: a directory with a root
 * file system and `config.json`. Programs are the host's own, mounted read-only, so no image is
 * needed; all else is as engines make it.
 */
import { chmod, lstat, mkdir, readlink, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { ociSeccomp } from "./oci-seccomp.ts";

/** What tells containers apart. All have no new privileges and a read-only root file system. */
export interface ContainerOptions {
  readonly uid: number;
  /** None unless given. */
  readonly capabilities?: readonly string[];
  /** Whether parts of `/proc` are masked and read-only, as engines do by default. */
  readonly isProcMasked?: boolean;
  /** System calls of `deploy/seccomp.json` that are refused all the same. */
  readonly refusedCalls?: readonly string[];
}

/** Where a container has this checkout. */
export const checkoutInside = "/opt/str";
/** Node of these tests. */
export const nodeInside = "/opt/node";

/** The only address that is the container's own; it is a public one. */
const ownAddress = "9.9.9.9";
/** Names that containers know, with their addresses. */
export const hostsInside = {
  "api.example.com": "93.184.215.14",
  "other.example.com": "93.184.215.15",
  "internal.example.com": "10.1.2.3",
} as const;

/** Every other address leads to the container's listeners as well. */
const everyAddress = [
  "ip link set lo up",
  `ip address add ${ownAddress}/32 dev lo`,
  "ip route add local 0.0.0.0/0 dev lo",
].join(" && ");

const checkout = fileURLToPath(new URL("../../..", import.meta.url));
const programDirectories = ["bin", "sbin", "lib", "lib32", "lib64", "libx32", "usr", "etc"];
const writableDirectories = ["/tmp", "/var/tmp"];

/** Docker's; podman's and those of Kubernetes are much the same. */
const maskedPaths = [
  ...["/proc/acpi", "/proc/asound", "/proc/interrupts", "/proc/kcore", "/proc/keys"],
  ...["/proc/latency_stats", "/proc/sched_debug", "/proc/scsi", "/proc/timer_list"],
  ...["/proc/timer_stats", "/sys/devices/virtual/powercap", "/sys/firmware"],
];
const readonlyPaths = ["/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"];

const systemMounts = [
  { destination: "/proc", type: "proc", source: "proc", options: ["nosuid", "noexec", "nodev"] },
  ...[
    { destination: "/dev", type: "tmpfs", options: ["nosuid", "strictatime", "mode=755"] },
    { destination: "/dev/pts", type: "devpts", options: ["nosuid", "noexec", "newinstance"] },
    { destination: "/dev/shm", type: "tmpfs", options: ["nosuid", "noexec", "nodev", "mode=1777"] },
    { destination: "/sys", type: "sysfs", options: ["nosuid", "noexec", "nodev", "ro"] },
  ].map((mount) => ({ ...mount, source: mount.type })),
];

/** Fills an empty directory, for one container that runs a command. */
export async function writeBundle(
  directory: string,
  { uid, capabilities = [], isProcMasked = false, refusedCalls = [] }: ContainerOptions,
  argv: readonly string[],
): Promise<void> {
  const root = join(directory, "root");
  for (const path of writableDirectories) {
    await mkdir(join(root, path), { recursive: true });
    // A runtime gives what it mounts there the mode of the directory.
    await chmod(join(root, path), 0o1777);
  }
  const hosts = join(directory, "hosts");
  const lines = Object.entries(hostsInside).map(([name, address]) => `${address} ${name}\n`);
  await writeFile(hosts, ["127.0.0.1 localhost\n", ...lines].join(""));
  const config = {
    ociVersion: "1.0.2",
    process: {
      user: { uid, gid: uid },
      cwd: "/",
      args: argv,
      env: ["PATH=/usr/local/bin:/usr/bin:/bin", "HOME=/tmp"],
      capabilities: { bounding: capabilities, effective: capabilities, permitted: capabilities },
      noNewPrivileges: true,
      rlimits: [{ type: "RLIMIT_NOFILE", hard: 4096, soft: 1024 }],
    },
    root: { path: "root", readonly: true },
    hostname: "container",
    mounts: [
      ...systemMounts,
      ...(await programMounts(root)),
      readOnly(hosts, "/etc/hosts"),
      readOnly(checkout, checkoutInside),
      readOnly(process.execPath, nodeInside),
      ...writableDirectories.map((destination) => ({
        ...{ destination, type: "tmpfs", source: "tmpfs", options: ["nosuid", "nodev"] },
      })),
    ],
    hooks: {
      createContainer: [{ path: "/bin/sh", args: ["sh", "-c", everyAddress], env: [path] }],
    },
    linux: {
      namespaces: ["pid", "network", "ipc", "uts", "mount"].map((type) => ({ type })),
      // As Docker has it.
      sysctl: { "net.ipv4.ip_unprivileged_port_start": "0" },
      resources: { devices: [{ allow: false, access: "rwm" }] },
      seccomp: await ociSeccomp(refusedCalls),
      ...(isProcMasked ? { maskedPaths, readonlyPaths } : {}),
    },
  };
  await writeFile(join(directory, "config.json"), JSON.stringify(config));
}

/** Where the hook finds `ip`. */
const path = "PATH=/usr/sbin:/usr/bin:/sbin:/bin";

/** The host's directories of programs, of which some are links into others. */
async function programMounts(root: string): Promise<readonly object[]> {
  const mounts: object[] = [];
  for (const name of programDirectories) {
    const source = `/${name}`;
    const found = await lstat(source).catch(() => undefined);
    if (found?.isSymbolicLink() === true) await symlink(await readlink(source), join(root, name));
    else if (found !== undefined) mounts.push(readOnly(source, source));
  }
  return mounts;
}

function readOnly(source: string, destination: string): object {
  return { destination, source, type: "none", options: ["rbind", "ro", "nosuid", "nodev"] };
}
