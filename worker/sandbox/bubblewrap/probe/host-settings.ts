/**
 * Facts about this host that tell why bubblewrap was refused something, or that an operator should
 * know. What is allowed is never concluded from them: that is tried.
 */
import { access, readFile } from "node:fs/promises";

/** What can be behind a refusal. A member is undefined where this host does not tell. */
export interface HostSettings {
  /** What the worker runs in, as far as it shows. */
  readonly container: ContainerKind | undefined;
  /** User id of the worker. */
  readonly uid: number | undefined;
  /** Whether somebody put a filter of system calls around the worker. */
  readonly isFiltered: boolean;
  /** `user.max_user_namespaces` of the worker's user namespace. */
  readonly maxUserNamespaces: number | undefined;
  /** `kernel.unprivileged_userns_clone`, which only kernels of Debian's have. */
  readonly unprivilegedUsernsClone: number | undefined;
  /** `kernel.apparmor_restrict_unprivileged_userns`, of Ubuntu 23.10 and later. */
  readonly appArmorRestrictsUserns: number | undefined;
  /**
   * Whether `kernel.core_pattern` is a program, which gets core dumps whatever RLIMIT_CORE is:
   * core(5).
   */
  readonly pipesCoreDumps: boolean;
}

/** What a container was started by. */
export type ContainerKind = "kubernetes" | "docker" | "podman";

/** Files that only such a container has. */
const signs: readonly (readonly [ContainerKind, string])[] = [
  ["kubernetes", "/var/run/secrets/kubernetes.io"],
  ["docker", "/.dockerenv"],
  ["podman", "/run/.containerenv"],
];

/** Reads them. Never rejects: what cannot be read is not known. */
export async function readHostSettings(): Promise<HostSettings> {
  const [status, maxUserNamespaces, unprivilegedUsernsClone, restricts, corePattern, container] =
    await Promise.all([
      text("/proc/self/status"),
      number("/proc/sys/user/max_user_namespaces"),
      number("/proc/sys/kernel/unprivileged_userns_clone"),
      number("/proc/sys/kernel/apparmor_restrict_unprivileged_userns"),
      text("/proc/sys/kernel/core_pattern"),
      containerKind(),
    ]);
  return {
    container,
    uid: process.getuid?.(),
    isFiltered: /^Seccomp:\s*2$/m.test(status ?? ""),
    maxUserNamespaces,
    unprivilegedUsernsClone,
    appArmorRestrictsUserns: restricts,
    pipesCoreDumps: corePattern?.startsWith("|") === true,
  };
}

async function containerKind(): Promise<ContainerKind | undefined> {
  const found = await Promise.all(
    signs.map(([kind, path]) =>
      access(path).then(
        () => kind,
        () => undefined,
      ),
    ),
  );
  return found.find((kind) => kind !== undefined);
}

function text(path: string): Promise<string | undefined> {
  return readFile(path, "latin1").catch(() => undefined);
}

async function number(path: string): Promise<number | undefined> {
  const content = await text(path);
  return content === undefined ? undefined : Number(content);
}
