/**
 * Why control groups cannot be used, and what an operator can do about it.
 */
import { isErrno } from "./files.ts";

/** Reasons, by what has to be done. */
export type CgroupRefusalCode =
  | "not-mounted"
  | "not-visible"
  | "read-only"
  | "not-delegated"
  | "no-controllers"
  | "not-alone"
  | "refused";

const systemd =
  "systemd: `Delegate=yes` in the worker's unit, or `systemd-run --user --scope -p Delegate=yes`";
const containers =
  "Docker 28: `--cgroupns=private --security-opt writable-cgroups=true`; Podman: `--cgroupns=private --security-opt unmask=/sys/fs/cgroup`; Kubernetes: a runtime class of containerd 2.1 with `cgroup_writable = true`, or CRI-O's annotation `io.kubernetes.cri-o.cgroup2-mount-hierarchy-rw`";

/** For the operator: how to give what is missing. Containers need cgroup v2. */
export const cgroupRemedies: Readonly<Record<CgroupRefusalCode, string>> = {
  "not-mounted": `mount the cgroup file system at /sys/fs/cgroup; ${containers}`,
  "not-visible": `give the container a cgroup namespace and mount of its own; ${containers}`,
  "read-only": `mount /sys/fs/cgroup writable; ${containers}`,
  "not-delegated": `let the worker's user own its group: ${systemd}; in a container, where root owns it, run the worker as root of a user namespace, as Podman without root and \`hostUsers: false\` in Kubernetes do; cgroup v1: chown directories of memory, pids and cpuacct`,
  "no-controllers": `give the worker's group the controllers memory and pids: ${systemd}; else write \`+memory +pids\` to the cgroup.subtree_control of each group above; some kernels start without memory unless they are booted with \`cgroup_enable=memory\``,
  "not-alone": `start the worker as the only program in its group: ${systemd}; in a container as its first process, without \`--init\` and without a shell around it`,
  refused: `see the kernel's log; ${systemd}`,
};

/** The kernel or the host does not let the worker use control groups. */
export class CgroupRefusal extends Error {
  readonly code: CgroupRefusalCode;

  constructor(code: CgroupRefusalCode, message: string, options?: { readonly cause: unknown }) {
    super(message, options);
    this.name = "CgroupRefusal";
    this.code = code;
  }
}

/** What the system's error says of a group. */
export function refusalOf(error: unknown, directory: string): CgroupRefusal {
  if (error instanceof CgroupRefusal) return error;
  const options = { cause: error };
  if (isErrno(error, "EROFS"))
    return new CgroupRefusal("read-only", `${directory} is mounted read-only`, options);
  if (isErrno(error, "EACCES", "EPERM"))
    return new CgroupRefusal("not-delegated", `${directory} is not this user's`, options);
  const why = error instanceof Error ? error.message : String(error);
  return new CgroupRefusal("refused", `${directory} cannot be used: ${why}`, options);
}
