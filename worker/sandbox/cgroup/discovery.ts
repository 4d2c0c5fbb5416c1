/**
 * Finds the control groups that this process is in, and where they are mounted.
 */
import { join, posix } from "node:path";
import type { CgroupFiles } from "./files.ts";
import { CgroupRefusal } from "./refusal.ts";

/** The group of this process in one hierarchy. */
export interface OwnGroup {
  readonly directory: string;
  /**
   * What is bound to a hierarchy of version 1; what a group of version 2 may pass on to groups
   * below.
   */
  readonly controllers: readonly string[];
}

/** A mounted hierarchy. */
interface CgroupMount {
  readonly type: string;
  /** The group that the mount point shows. */
  readonly root: string;
  readonly mountPoint: string;
  readonly isReadOnly: boolean;
  /** Among them, for version 1, the controllers. */
  readonly options: readonly string[];
}

/** The group in version 2's one hierarchy. Throws CgroupRefusal where it cannot be written to. */
export function ownGroupV2(files: CgroupFiles): OwnGroup {
  const path = membershipsOf(files).get("");
  const mounts = mountsOf(files).filter(({ type }) => type === "cgroup2");
  if (path === undefined || mounts.length === 0)
    throw new CgroupRefusal("not-mounted", "cgroup v2 is not mounted");
  const directory = locate(files, path, mounts, "cgroup v2");
  const controllers = files.read(join(directory, "cgroup.controllers")) ?? "";
  return { directory, controllers: controllers.split(/\s+/).filter(Boolean) };
}

/**
 * The group in the hierarchy of one controller of version 1. Throws CgroupRefusal where it cannot
 * be written to.
 */
export function ownGroupV1(files: CgroupFiles, controller: string): OwnGroup {
  const what = `${controller} of cgroup v1`;
  const path = membershipsOf(files).get(controller);
  const mounts = mountsOf(files).filter(
    ({ type, options }) => type === "cgroup" && options.includes(controller),
  );
  if (path === undefined || mounts.length === 0)
    throw new CgroupRefusal("not-mounted", `${what} is not mounted`);
  return { directory: locate(files, path, mounts, what), controllers: [controller] };
}

/**
 * The directory of a group: of several mounts that show it the first one that is writable, else it
 * is refused.
 */
function locate(
  files: CgroupFiles,
  path: string,
  mounts: readonly CgroupMount[],
  what: string,
): string {
  const visible = mounts.flatMap(({ root, mountPoint, isReadOnly }) => {
    const directory = join(mountPoint, posix.relative(root, path));
    // Paths are relative to a cgroup namespace, and a mount may be another one's. The group itself
    // tells.
    const isShown = files.processesIn(directory).includes(process.pid);
    return isShown ? [{ directory, isReadOnly }] : [];
  });
  const writable = visible.find(({ isReadOnly }) => !isReadOnly);
  if (writable !== undefined) return writable.directory;
  throw visible[0] === undefined
    ? new CgroupRefusal("not-visible", `${what}: the worker's own group is not to be seen`)
    : new CgroupRefusal("read-only", `${visible[0].directory} is mounted read-only`);
}

/**
 * Group by controller, and by "" for version 2. Lines are `number:controllers:path`; see
 * cgroups(7), /proc/[pid]/cgroup.
 */
function membershipsOf(files: CgroupFiles): ReadonlyMap<string, string> {
  const paths = new Map<string, string>();
  for (const line of (files.read("/proc/self/cgroup") ?? "").split("\n")) {
    const [, controllers, path] = /^\d+:([^:]*):(.*)$/.exec(line) ?? [];
    if (controllers === undefined || path === undefined) continue;
    for (const controller of controllers.split(",")) paths.set(controller, path);
  }
  return paths;
}

/**
 * Mounts of control groups. See proc_pid_mountinfo(5): a number of optional fields ends with a
 * dash.
 */
function mountsOf(files: CgroupFiles): readonly CgroupMount[] {
  const text = files.read("/proc/self/mountinfo") ?? "";
  return text.split("\n").flatMap((line) => {
    const [mount = "", fileSystem = ""] = line.split(" - ");
    const [, , , root = "", mountPoint = "", mountOptions = ""] = mount.split(" ");
    const [type = "", , options = ""] = fileSystem.split(" ");
    if (type !== "cgroup" && type !== "cgroup2") return [];
    const isReadOnly = [mountOptions, options].some((list) => list.split(",").includes("ro"));
    return [
      {
        type,
        root: unescape(root),
        mountPoint: unescape(mountPoint),
        isReadOnly,
        options: options.split(","),
      },
    ];
  });
}

/** White space and backslashes are octal in mountinfo. */
function unescape(field: string): string {
  return field.replace(/\\([0-7]{3})/g, (_, digits: string) =>
    String.fromCharCode(Number.parseInt(digits, 8)),
  );
}
