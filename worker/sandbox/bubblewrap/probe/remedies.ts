/**
 * Remedies for failed checks, for the operator: pure functions of refusal and host settings.
 */
import type { HostSettings, ContainerKind } from "./host-settings.ts";

/** An option in the syntax of each container engine. */
type Spelling = Readonly<Record<ContainerKind, string>>;

const spellings = {
  seccomp: {
    docker: "--security-opt seccomp=deploy/seccomp.json",
    podman: "--security-opt seccomp=deploy/seccomp.json",
    kubernetes:
      "securityContext.seccompProfile: {type: Localhost, localhostProfile: str-worker.json}, which is deploy/seccomp.json on each node",
  },
  appArmor: {
    docker:
      "--security-opt apparmor=NAME with a profile that allows `userns`, `mount`, `umount` and `pivot_root`, or apparmor=unconfined",
    podman:
      "--security-opt apparmor=NAME with a profile that allows `userns`, `mount`, `umount` and `pivot_root`, or apparmor=unconfined",
    kubernetes:
      "securityContext.appArmorProfile: {type: Localhost, localhostProfile: NAME} with a profile that allows `userns`, `mount`, `umount` and `pivot_root`, or {type: Unconfined}",
  },
  freshProc: {
    docker: "--security-opt systempaths=unconfined",
    podman: "--security-opt unmask=ALL",
    kubernetes:
      "procMount: Unmasked in the container's securityContext with hostUsers: false in the pod's spec",
  },
  noCapabilities: {
    docker: "--cap-drop=ALL, and no --cap-add",
    podman: "--cap-drop=ALL, and no --cap-add",
    kubernetes: 'securityContext.capabilities: {drop: ["ALL"]}, and nothing under add',
  },
  user: {
    docker: "--user 1000:1000",
    podman: "--user 1000:1000",
    kubernetes: "securityContext: {runAsNonRoot: true, runAsUser: 1000}",
  },
} as const satisfies Readonly<Record<string, Spelling>>;

type Option = keyof typeof spellings;

/** Ubuntu 23.10 and later remove all rights in user namespaces of programs without a profile. */
const appArmorOfUbuntu =
  "on the host: sysctl -w kernel.apparmor_restrict_unprivileged_userns=0, or better an AppArmor profile for the bubblewrap program with `flags=(unconfined)` and `userns,` (docs/doctor.md has one)";

/** Causes of refused namespaces, with their remedies; the first that applies counts. */
const causes: readonly {
  applies(refusal: string, found: HostSettings): boolean;
  remedy(found: HostSettings): string;
}[] = [
  {
    applies: (refusal) => /Unexpected capabilities/.test(refusal),
    remedy: (found) =>
      `take the capabilities away that the worker's user has, which bubblewrap does not accept: ${option("noCapabilities", found)}`,
  },
  {
    applies: (refusal, { maxUserNamespaces }) =>
      maxUserNamespaces === 0 || /ENOSPC|No space left/.test(refusal),
    remedy: () =>
      "allow user namespaces: sysctl -w user.max_user_namespaces=15000 on the host, kept in a file of /etc/sysctl.d",
  },
  {
    applies: (_, { unprivilegedUsernsClone }) => unprivilegedUsernsClone === 0,
    remedy: () =>
      "allow user namespaces to ordinary users: sysctl -w kernel.unprivileged_userns_clone=1 on the host, kept in a file of /etc/sysctl.d",
  },
  {
    // EPERM from clone(2) itself; AppArmor answers later or with EACCES.
    applies: (refusal, { isFiltered }) =>
      isFiltered && /No permissions to creat|not permitted|not implemented/.test(refusal),
    remedy: (found) =>
      `a seccomp profile around the worker refuses namespaces, as Docker's default one does: ${option("seccomp", found)}`,
  },
  {
    applies: (refusal) => /Failed to make \/ slave|mount/i.test(refusal),
    remedy: (found) =>
      `mounts are refused in a namespace of bubblewrap's own, as AppArmor's docker-default does: ${option("appArmor", found)}${
        found.appArmorRestrictsUserns === 1
          ? "; not unconfined alone, since kernel.apparmor_restrict_unprivileged_userns is 1"
          : ""
      }`,
  },
  {
    applies: (_, { appArmorRestrictsUserns }) => appArmorRestrictsUserns === 1,
    remedy: () => `AppArmor restricts user namespaces; ${appArmorOfUbuntu}`,
  },
];

/** How to allow bubblewrap its sandboxes, by its refusal. */
export function userNamespacesRemedy(refusal: string, found: HostSettings): string {
  return (
    causes.find(({ applies }) => applies(refusal, found))?.remedy(found) ??
    "a kernel with user namespaces (CONFIG_USER_NS), sysctl user.max_user_namespaces above 0, and no security module or seccomp profile that refuses them to ordinary users"
  );
}

/** How to avoid a root user without root's capabilities. */
export function otherUserRemedy(found: HostSettings): string {
  return `run the worker as an ordinary user, which needs no capability: ${option("user", found)}`;
}

/** How to allow network namespaces. */
export function networkRemedy(refusal: string, found: HostSettings): string {
  if (/RTM_NEWADDR|RTM_NEWLINK/.test(refusal)) {
    return found.appArmorRestrictsUserns === 1
      ? `AppArmor takes the rights in user namespaces away, so that the loopback device cannot be set up; ${appArmorOfUbuntu}`
      : `a security module takes the rights in user namespaces away, so that the loopback device cannot be set up: ${option("appArmor", found)}`;
  }
  if (/ENOSPC|No space left/.test(refusal))
    return "allow network namespaces: sysctl -w user.max_net_namespaces=15000 on the host";
  return `a kernel with network namespaces (CONFIG_NET_NS), and a seccomp profile that allows CLONE_NEWNET and netlink sockets: ${option("seccomp", found)}`;
}

/** How to allow a new /proc. */
export function freshProcRemedy(found: HostSettings): string {
  const how = option("freshProc", found);
  return `let the worker have a /proc over which nothing is mounted: ${how}`;
}

/** How to refuse nested user namespaces. */
export function nestedRemedy(found: HostSettings): string {
  const how = option("freshProc", found);
  return `let bubblewrap write /proc/sys/user/max_user_namespaces of its own namespace, which is read-only here: ${how}`;
}

/** How to enable the system-call filter. */
export function seccompRemedy(isFilteredArch: boolean, arch: string): string {
  return isFilteredArch
    ? "a kernel with CONFIG_SECCOMP_FILTER, and a seccomp profile around the worker that allows prctl(PR_SET_SECCOMP)"
    : `there is no filter for ${arch}; run the worker on x64 or arm64, or leave seccomp out of SANDBOX_MINIMUM`;
}

/** How to count processes per sandbox. */
export function rlimitsRemedy(found: HostSettings): string {
  return found.uid === 0
    ? `run the worker as an ordinary user (${option("user", found)}), or set SANDBOX_UID: the kernel counts no processes of root`
    : "no security module or seccomp profile that refuses setrlimit or prlimit to the worker's user";
}

/** How to give tmpfs a size. */
export function tmpfsRemedy(): string {
  return "bubblewrap 0.8 or newer, whose --size is kept by the kernel's tmpfs";
}

/** How to show the worker a sandbox's usage. */
export function guardRemedy(seesProcesses: boolean, found: HostSettings): string {
  if (!seesProcesses) {
    return "a kernel that has /proc/PID/task/TID/children and RssAnon in /proc/PID/status (CONFIG_PROC_CHILDREN, Linux 4.5), and a /proc that is mounted without hidepid";
  }
  return found.uid === 0
    ? `run the worker as an ordinary user, whose sandboxes are its own: ${option("user", found)}. A root that is to look into sandboxes of another user needs CAP_SYS_PTRACE`
    : "no security module that keeps the worker from looking at processes of its own user (ptrace access)";
}

/** An option in the syntax of the worker's engine, or of all when that is unknown. */
function option(name: Option, { container }: HostSettings): string {
  const spelling = spellings[name];
  if (container !== undefined) return spelling[container];
  const { docker, podman, kubernetes } = spelling;
  const engines =
    docker === podman ? `Docker or podman: ${docker}` : `Docker: ${docker}; podman: ${podman}`;
  return `${engines}; Kubernetes: ${kubernetes}`;
}
