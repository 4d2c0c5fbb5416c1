/**
 * Finds processes that attacks left on this host.
 */
import { readFileSync, readdirSync } from "node:fs";

/** Prefix of an argument of processes that must end with their call; the token follows. */
const leftPrefix = "str-left-";

/** Ids of the processes that attacks with this token left. See proc_pid_cmdline(5). */
export function leftProcesses(token: string): readonly number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) =>
      commandLine(pid).some((word) => word.startsWith(leftPrefix) && word.endsWith(token)),
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
