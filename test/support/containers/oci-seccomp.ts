/**
 * The seccomp profile of `deploy/`, which is in the format of Docker, Podman and Kubernetes, as a
 * runtime is given it: engines make this of it.
 */
import { readFile } from "node:fs/promises";

const profileFile = new URL("../../../deploy/seccomp.json", import.meta.url);

/** Names of this machine's architecture in profiles. */
const architectures: Partial<Record<NodeJS.Architecture, string>> = {
  x64: "SCMP_ARCH_X86_64",
  arm64: "SCMP_ARCH_AARCH64",
};

interface Rule {
  readonly names: readonly string[];
  readonly action: string;
  readonly args?: readonly object[];
}

interface EngineProfile {
  readonly defaultAction: string;
  readonly defaultErrnoRet: number;
  readonly archMap: readonly {
    readonly architecture: string;
    readonly subArchitectures: readonly string[];
  }[];
  readonly syscalls: readonly Rule[];
}

/**
 * The member `linux.seccomp` of a bundle.
 *
 * @param refused system calls that it does not allow, unlike the profile
 */
export async function ociSeccomp(refused: readonly string[]): Promise<object> {
  const profile = JSON.parse(await readFile(profileFile, "utf8")) as EngineProfile;
  const { defaultAction, defaultErrnoRet, archMap, syscalls } = profile;
  const own = archMap.filter(({ architecture }) => architecture === architectures[process.arch]);
  return {
    defaultAction,
    defaultErrnoRet,
    architectures: own.flatMap(({ architecture, subArchitectures }) => [
      architecture,
      ...subArchitectures,
    ]),
    syscalls: syscalls.map(({ names, ...rule }) => ({
      ...rule,
      names: names.filter((name) => !refused.includes(name)),
    })),
  };
}
