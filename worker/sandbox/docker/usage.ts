/**
 * The control group that an engine made for a container, as the worker sees it on this host.
 */
import { readFile } from "node:fs/promises";
import type { CgroupControl, CgroupUsage, SandboxCgroup } from "../cgroup/cgroup.ts";
import { cgroupV1, cgroupV2 } from "../cgroup/dialect.ts";
import { CgroupFiles } from "../cgroup/files.ts";
import type { SandboxCgroups } from "../accounting/sandbox-usage.ts";
import type { EngineInfo } from "./engine/containers.ts";

const mountPoint = "/sys/fs/cgroup";
const controllers: readonly CgroupControl[] = ["memory", "processes", "cpu"];

const nothing: CgroupUsage = {
  cpuMs: undefined,
  peakMemoryBytes: undefined,
  peakProcesses: undefined,
  memoryKills: 0,
};

/** Whether a process of this host is in the group of a container: its number may be another's. */
export async function isOfContainer(pid: number, id: string): Promise<boolean> {
  const groups = await readFile(`/proc/${pid}/cgroup`, "utf8").catch(() => "");
  return groups.includes(id);
}

/** Reads the groups that an engine makes. */
export function engineCgroups({ MemoryLimit, PidsLimit }: EngineInfo): SandboxCgroups {
  return {
    // Time is read of processes: the group is gone as soon as the last of them is.
    controls: { memory: MemoryLimit ?? false, processes: PidsLimit ?? false, cpu: false },
    create: () => Promise.resolve(new EngineCgroup()),
    discard: () => undefined,
  };
}

/** Usage as of the last successful read. */
class EngineCgroup implements SandboxCgroup {
  readonly #files = new CgroupFiles();
  #directories: ReadonlyMap<string, string> = new Map();
  #last = nothing;

  async add(pid: number): Promise<void> {
    const text = await readFile(`/proc/${pid}/cgroup`, "utf8").catch(() => "");
    const lines = [...text.matchAll(/^\d+:([^:]*):(.*)$/gm)];
    this.#directories = new Map(
      lines.flatMap(([, names = "", path = ""]) =>
        names
          .split(",")
          .map((name) => [name, `${mountPoint}${name === "" ? "" : `/${name}`}${path}`] as const),
      ),
    );
  }

  read(): CgroupUsage {
    const dialect = this.#directories.has("memory") ? cgroupV1 : cgroupV2;
    const usage = dialect.usage((control, file) => {
      if (!controllers.includes(control)) return undefined;
      const name = dialect.version === 1 ? (dialect.controllers[control] ?? "") : "";
      const directory = this.#directories.get(name);
      return directory && this.#files.read(`${directory}/${file}`);
    });
    const { cpuMs, peakMemoryBytes, memoryKills } = usage;
    this.#last = {
      cpuMs: cpuMs ?? this.#last.cpuMs,
      peakMemoryBytes: peakMemoryBytes ?? this.#last.peakMemoryBytes,
      // Of processes, those of the container's init do not count.
      peakProcesses: undefined,
      memoryKills: Math.max(memoryKills, this.#last.memoryKills),
    };
    return this.#last;
  }

  /** The engine kills. */
  kill(): void {}

  async [Symbol.asyncDispose](): Promise<void> {}
}
