/**
 * Processes of a template as this host numbers them.
 */
import { readProc } from "../../proc/files.ts";
import { childrenOf } from "../../proc/processes.ts";

/** Looks at a list that may lack somebody when others end meanwhile (proc_tid_children(5)). */
const maxLooks = 5;

/**
 * The child of a process that is the first of a pid namespace of its own and that its parent knows
 * by a number; undefined when there is none. Throws the system's error when this process can open
 * nothing more. See proc_pid_status(5), `NSpid`.
 */
export function firstOfNamespace(parentPid: number, innerPid: number): number | undefined {
  for (let look = 0; look < maxLooks; look++) {
    // The kernel lists the youngest last.
    const found = childrenOf(parentPid).findLast((pid) => isFirst(pid, innerPid));
    if (found !== undefined) return found;
  }
  return undefined;
}

function isFirst(pid: number, innerPid: number): boolean {
  const numbers = numbersOf(pid);
  return numbers.at(-1) === 1 && numbers.at(-2) === innerPid;
}

/**
 * The numbers of a process in the pid namespaces that it is in, from this process's one inwards.
 */
function numbersOf(pid: number): readonly number[] {
  const line = /^NSpid:\s+(.*)$/m.exec(readProc(`/proc/${pid}/status`))?.[1];
  return line?.split(/\s+/).map(Number) ?? [];
}
