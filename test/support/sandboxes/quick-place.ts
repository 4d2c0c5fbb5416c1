/**
 * Where tests keep files that need no disk.
 */
import { readFileSync, statfsSync } from "node:fs";

const memoryPlace = "/dev/shm";
const diskPlace = "/var/tmp";

/** What tests have there at a time, at most. */
const neededBytes = 2 * 1024 ** 3;
const neededFiles = 500_000;

/**
 * A directory that everybody can reach and programs can run from, also where TMPDIR is private. In
 * memory if there is room: a disk may take a millisecond of processor time for each new file where
 * many were removed lately (ext4 without a journal does).
 */
export const quickPlace = isRoomy() ? memoryPlace : diskPlace;

/**
 * The same on a disk: for what sandboxes are to see where it is, since they have a /dev of their
 * own.
 */
export const slowPlace = diskPlace;

function isRoomy(): boolean {
  const mounts = readFileSync("/proc/self/mounts", "utf8").split("\n");
  const mount = mounts.map((line) => line.split(" ")).findLast(([, path]) => path === memoryPlace);
  const [, , type, options = ""] = mount ?? [];
  if (type !== "tmpfs" || ["ro", "noexec"].some((option) => options.split(",").includes(option)))
    return false;
  const { bsize, bavail, ffree } = statfsSync(memoryPlace);
  return bsize * bavail >= neededBytes && ffree >= neededFiles;
}
