/**
 * Who keeps each limit of a container, by what the engine says and what the worker sees.
 */
import type { Enforcement, Unenforced } from "../sandbox.ts";
import type { EngineInfo } from "./engine/containers.ts";

/** What decides it. */
interface Findings {
  readonly info: EngineInfo;
  /** Whether the worker sees the processes of containers. */
  readonly isSeen: boolean;
}

/** Before anything is found, only that which every engine keeps counts. */
export function enforcementOf(findings: Findings | undefined): Enforcement {
  const guard = findings?.isSeen === true ? "guard" : "none";
  const { MemoryLimit, PidsLimit, CpuCfsQuota } = findings?.info ?? {};
  return {
    memoryBytes: MemoryLimit === true ? "kernel" : guard,
    cpuSeconds: guard,
    cpus: CpuCfsQuota === true ? "kernel" : "none",
    processes: PidsLimit === true ? "kernel" : guard,
    openFiles: "kernel",
    fileSizeBytes: "kernel",
    tmpBytes: "kernel",
    diskBytes: guard,
    files: guard,
    statusBytes: "guard",
  };
}

/** What the engine's sandboxes lack. */
export function gapsOf({ info, isSeen }: Findings): readonly Unenforced[] {
  const hasFilter = (info.SecurityOptions ?? []).some(
    (option) => option.startsWith("name=seccomp") && !option.includes("profile=unconfined"),
  );
  const isUnbounded = info.MemoryLimit !== true && !isSeen;
  return [
    ...(hasFilter ? [] : (["seccomp"] as const)),
    ...(isUnbounded ? (["resident-memory"] as const) : []),
    ...(isSeen ? [] : (["held-files"] as const)),
  ];
}
