/**
 * What attacks left running on this host.
 */
import { readFileSync, readdirSync } from "node:fs";

/**
 * What a program's command line says of itself that it should be gone after the call; the token
 * follows.
 */
const mark = "str-left-";

/** Processes of this host that an attack with this token left. See proc_pid_cmdline(5). */
export function leftProcesses(token: string): readonly number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) =>
      commandLine(pid).some((word) => word.startsWith(mark) && word.endsWith(token)),
    );
}

function commandLine(pid: number): readonly string[] {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0");
  } catch {
    // Gone meanwhile.
    return [];
  }
}
