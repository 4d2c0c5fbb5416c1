/**
 * Finds the control groups of this process, and their mounts.
 */
import { join, posix } from "node:path";
import type { CgroupFiles } from "./files.ts";
import { CgroupRefusal } from "./refusal.ts";

/** The group of this process in one hierarchy. */
export interface OwnGroup {
  readonly directory: string;
  /** Controllers of the hierarchy in version 1; those that the group may pass on in version 2. */
  readonly controllers: readonly string[];
}

/** A mounted hierarchy. */
interface CgroupMount {
  readonly type: string;
  /** The group that the mount point shows. */
  readonly root: string;
  readonly mountPoint: string;
  readonly isReadOnly: boolean;
  /** They name the controllers of version 1. */
  readonly options: readonly string[];
}

/** The group in version 2. Throws CgroupRefusal where it cannot be written to. */
export function ownGroupV2(files: CgroupFiles): OwnGroup {
  const mounts = mountsOf(files).filter(({ type }) => type === "cgroup2");
  const directory = locate(files, "", mounts, "cgroup v2");
  const controllers = files.read(join(directory, "cgroup.controllers")) ?? "";
  return { directory, controllers: controllers.split(/\s+/).filter(Boolean) };
}

/** The group in a controller's hierarchy of version 1. Throws CgroupRefusal like the other. */
export function ownGroupV1(files: CgroupFiles, controller: string): OwnGroup {
  const mounts = mountsOf(files).filter(
    ({ type, options }) => type === "cgroup" && options.includes(controller),
  );
  const directory = locate(files, controller, mounts, `${controller} of cgroup v1`);
  return { directory, controllers: [controller] };
}

/** The directory of a group: of several mounts that show it the first writable one. */
function locate(
  files: CgroupFiles,
  controller: string,
  mounts: readonly CgroupMount[],
  what: string,
): string {
  const path = membershipsOf(files).get(controller);
  if (path === undefined || mounts.length === 0)
    throw new CgroupRefusal("not-mounted", `${what} is not mounted`);
  const visible = mounts.flatMap(({ root, mountPoint, isReadOnly }) => {
    const directory = join(mountPoint, posix.relative(root, path));
    // Paths are relative to a cgroup namespace, and a mount may be another one's.
    const isShown = files.processesIn(directory).includes(process.pid);
    return isShown ? [{ directory, isReadOnly }] : [];
  });
  const writable = visible.find(({ isReadOnly }) => !isReadOnly);
  if (writable !== undefined) return writable.directory;
  throw visible[0] === undefined
    ? new CgroupRefusal("not-visible", `${what}: the worker's own group is not to be seen`)
    : new CgroupRefusal("read-only", `${visible[0].directory} is mounted read-only`);
}

/** Group by controller, "" for version 2. Lines of cgroups(7): `number:controllers:path`. */
function membershipsOf(files: CgroupFiles): ReadonlyMap<string, string> {
  const text = files.read("/proc/self/cgroup") ?? "";
  const lines = [...text.matchAll(/^\d+:([^:]*):(.*)$/gm)];
  return new Map(
    lines.flatMap(([, controllers = "", path = ""]) =>
      controllers.split(",").map((controller) => [controller, path] as const),
    ),
  );
}

/** Lines of proc_pid_mountinfo(5): optional fields end with a dash. */
function mountsOf(files: CgroupFiles): readonly CgroupMount[] {
  const text = files.read("/proc/self/mountinfo") ?? "";
  return text.split("\n").flatMap((line) => {
    const [mount = "", fileSystem = ""] = line.split(" - ");
    const [, , , root = "", mountPoint = "", mountOptions = ""] = mount.split(" ");
    const [type = "", , superOptions = ""] = fileSystem.split(" ");
    if (type !== "cgroup" && type !== "cgroup2") return [];
    const options = superOptions.split(",");
    const isReadOnly = [...mountOptions.split(","), ...options].includes("ro");
    return [{ type, root: unescape(root), mountPoint: unescape(mountPoint), isReadOnly, options }];
  });
}

/** White space and backslashes are octal in mountinfo. */
function unescape(field: string): string {
  return field.replace(/\\([0-7]{3})/g, (_, digits: string) =>
    String.fromCharCode(Number.parseInt(digits, 8)),
  );
}
