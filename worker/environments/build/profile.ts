/**
 * The profile that packages are built under: as wide as compilers need, with the network.
 */
import { type Profile, restrictiveProfile } from "../../sandbox/profile.ts";

const MiB = 1024 * 1024;

/** Limits that the operator sets. */
export interface BuildLimits {
  readonly timeoutSeconds: number;
  readonly memoryBytes: number;
  readonly diskBytes: number;
}

/** Processors of one build. */
const cpus = 2;

/** The profile; its name stands in no manifest. */
export function buildProfile({ timeoutSeconds, memoryBytes, diskBytes }: BuildLimits): Profile {
  return {
    ...restrictiveProfile,
    name: "packages",
    network: "host",
    limits: {
      memoryBytes,
      diskBytes,
      cpus,
      cpuSeconds: timeoutSeconds * cpus,
      fileSizeBytes: diskBytes,
      openFiles: 4_096,
      processes: 256,
      tmpBytes: 64 * MiB,
      files: 500_000,
      statusBytes: 1 * MiB,
    },
  };
}
