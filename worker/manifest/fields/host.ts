/**
 * The fields `mounts` and `devices` of a tool. `sandbox/host-access.ts` checks the permission.
 */
import { z } from "zod";
import { accepts, acceptsKeys, whenFineSoFar } from "../../support/text/expectation.ts";
import { isRecord } from "../../support/json/yaml-document.ts";
import type { ToolMount } from "../manifest.ts";

/** Largest number of mounts, and of devices, of one tool. */
export const maxHostParts = 16;

/** Longest path, in characters. */
const maxPathLength = 1024;

/** Directories of each sandbox: no mount may cover, contain or lie in one. */
const ownDirectories = [
  ...[
    "/sandbox",
    "/tools",
    "/node_modules",
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
  ],
  ...["/proc", "/sys", "/dev", "/etc", "/run", "/tmp"],
];

/** Devices of each sandbox, and those of a process's terminal or descriptors. */
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
  .max(maxPathLength, absolutePath)
  .regex(plainPath, { ...absolutePath, ...whenFineSoFar });

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
  .max(maxHostParts, mountList)
  .superRefine(
    (value, context) => {
      const targets = value.map(targetOf);
      for (const [index, mount] of targets.entries()) {
        if (mount === undefined) continue;
        const problem = targetProblem(mount.target, targets.slice(0, index));
        if (problem === undefined) continue;
        const { field } = mount;
        const message = field === "target" ? problem : `${problem}; give it a "target"`;
        context.addIssue({ code: "custom", path: [index, field], message });
      }
    },
    { when: ({ value }) => Array.isArray(value) && value.length <= maxHostParts },
  );

/** Path of a mount inside the sandbox, and its field. */
interface MountTarget {
  readonly target: string;
  readonly field: "source" | "target";
}

/** Undefined for a mount without a usable path. */
function targetOf(mount: unknown): MountTarget | undefined {
  if (!isRecord(mount)) return undefined;
  const { source, target } = mount;
  const field = target === undefined || target === null ? "source" : "target";
  const { data } = path.safeParse(field === "target" ? target : source);
  return data === undefined ? undefined : { target: data, field };
}

/** The problem of a target beside earlier ones: a read-only mount cannot contain another. */
function targetProblem(
  target: string,
  earlier: readonly (MountTarget | undefined)[],
): string | undefined {
  const quoted = JSON.stringify(target);
  if (ownDirectories.some((own) => overlap(own, target)))
    return `${quoted} is refused: it is, holds, or lies in a directory that the sandbox has of its own`;
  const other = earlier.find((one) => one !== undefined && overlap(one.target, target));
  return other && `${quoted} overlaps ${JSON.stringify(other.target)}`;
}

/** The field `devices`. */
export const devicesField = z
  .array(
    z
      .string(devicePath)
      .max(maxPathLength, devicePath)
      .regex(plainPath, { ...devicePath, ...whenFineSoFar })
      .startsWith("/dev/", { ...devicePath, ...whenFineSoFar })
      .refine((device) => !ownDevices.test(device), { ...ownDevice, ...whenFineSoFar }),
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
