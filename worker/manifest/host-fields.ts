/**
 * The fields of a tool that name parts of the host: `mounts` and `devices`. Whether the operator allows them is not said here.
 */
import { z } from "zod";
import { accepts, acceptsKeys } from "../support/expectation.ts";
import type { ToolMount } from "./manifest.ts";

/** Mounts, and devices, of one tool. */
export const maxHostParts = 16;

/** Longest path, in characters. */
const maxPathLength = 1024;

/** What every sandbox has of its own: nothing of the host is put there, in its place, or above it. */
const ownDirectories = [
  ...["/sandbox", "/tools", "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"],
  ...["/proc", "/sys", "/dev", "/etc", "/run", "/tmp"],
];

/** What is in every sandbox's /dev, and what stands for the own terminal or descriptors of a process. */
const ownDevices =
  /^\/dev\/(?:null|zero|full|random|urandom|tty|console|ptmx|stdin|stdout|stderr|core|(?:pts|shm|fd|mqueue)\/.*)$/;

const absolutePath = accepts(
  "an absolute path without . and .. in it, such as /data/models, other than /",
);
const devicePath = accepts("the path of a device below /dev, such as /dev/nvidia0");
const mountMap = acceptsKeys('a map of "source" and "target"', ["source", "target"]);
const mountList = accepts(`a list of at most ${maxHostParts} maps of "source" and "target"`);
const deviceList = accepts(`a list of at most ${maxHostParts} paths of devices`);
const ownDevice = {
  error: ({ input }: { input?: unknown }) =>
    `${JSON.stringify(input)} is refused: the sandbox has one of its own`,
};

/** No control characters, no empty level, no `.` and `..`. */
const plainPath = /^(?:\/(?!\.{1,2}(?:\/|$))[^/\p{Cc}]+)+$/u;

const path = z
  .string(absolutePath)
  .max(maxPathLength, { ...absolutePath, abort: true })
  .regex(plainPath, { ...absolutePath, abort: true });

const mountSchema = z.strictObject(
  {
    source: path.describe("Path on the host, of a file or a directory."),
    target: path.nullish().describe("Path inside. Default: the same as on the host."),
  },
  mountMap,
);

/** The field `mounts`. */
export const mountsField = z
  .array(mountSchema, mountList)
  .max(maxHostParts, { ...mountList, abort: true })
  .check(({ value, issues }) => {
    const targets = value.map((fields) => toMount(fields).target);
    for (const [index, target] of targets.entries()) {
      const message = targetProblem(target, targets.slice(0, index));
      if (message === undefined) continue;
      issues.push({ code: "custom", input: value, path: [index, "target"], message });
    }
  });

/** What is wrong with a target beside those before it: what is mounted read-only has no room for another mount. */
function targetProblem(target: string, earlier: readonly string[]): string | undefined {
  const quoted = JSON.stringify(target);
  if (ownDirectories.some((own) => overlap(own, target)))
    return `${quoted} is refused: it is, holds, or lies in a directory that the sandbox has of its own`;
  const other = earlier.find((one) => overlap(one, target));
  return other && `${quoted} overlaps ${JSON.stringify(other)}`;
}

/** The field `devices`. */
export const devicesField = z
  .array(
    z
      .string(devicePath)
      .max(maxPathLength, { ...devicePath, abort: true })
      .regex(plainPath, { ...devicePath, abort: true })
      .startsWith("/dev/", { ...devicePath, abort: true })
      .refine((device) => !ownDevices.test(device), ownDevice),
    deviceList,
  )
  .max(maxHostParts, deviceList);

/** A mount with its target. */
export function toMount({ source, target }: z.output<typeof mountSchema>): ToolMount {
  return { source, target: target ?? source };
}

/** Whether one of the paths is the other or lies below it. */
function overlap(a: string, b: string): boolean {
  return a === b || a.startsWith(`${b}/`) || b.startsWith(`${a}/`);
}
