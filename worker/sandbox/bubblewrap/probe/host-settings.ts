/**
 * Settings of this host that explain refusals, for remedies. Trials decide what the host allows,
 * never these settings.
 */
import { access, readFile } from "node:fs/promises";

/** Causes of refusals. A member is undefined where this host hides it. */
export interface HostSettings {
  /** The worker's container, if it shows. */
  readonly container: ContainerKind | undefined;
  /** User id of the worker. */
  readonly uid: number | undefined;
  /** Whether the worker runs under a system-call filter. */
  readonly isFiltered: boolean;
  /** `user.max_user_namespaces` of the worker's user namespace. */
  readonly maxUserNamespaces: number | undefined;
  /** `kernel.unprivileged_userns_clone`, which only kernels of Debian's have. */
  readonly unprivilegedUsernsClone: number | undefined;
  /** `kernel.apparmor_restrict_unprivileged_userns`, of Ubuntu 23.10 and later. */
  readonly appArmorRestrictsUserns: number | undefined;
  /** Whether `kernel.core_pattern` is a program, which ignores RLIMIT_CORE: core(5). */
  readonly pipesCoreDumps: boolean;
}

/** Engine of a container. */
export type ContainerKind = "kubernetes" | "docker" | "podman";

/** Files of one engine only. */
const signs: readonly (readonly [ContainerKind, string])[] = [
  ["kubernetes", "/var/run/secrets/kubernetes.io"],
  ["docker", "/.dockerenv"],
  ["podman", "/run/.containerenv"],
];

/** Reads the settings. Never rejects. */
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
