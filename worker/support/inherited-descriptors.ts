/**
 * Closes descriptors that the process was started with and does not know of.
 */
import { closeSync, readFileSync, readdirSync } from "node:fs";

/**
 * Flag of a descriptor that exec closes, as /proc shows it, in octal (proc_pid_fdinfo(5), open(2)).
 */
const closeOnExec = 0o2000000;
const firstUnknown = 3;

/**
 * Closes every descriptor above stderr that programs started from here would inherit. Whatever
 * opened them in the process before us meant them for itself: a terminal multiplexer's socket, a CI
 * runner's pipe, however high its number. Node marks all of its own as close-on-exec. To be called
 * before anything else opens descriptors.
 */
export function closeInheritedDescriptors(): void {
  for (const descriptor of inheritableDescriptors()) close(descriptor);
}

/** Descriptors above stderr that a program started from here would inherit. */
export function inheritableDescriptors(): readonly number[] {
  return readdirSync("/proc/self/fd")
    .map(Number)
    .filter((descriptor) => descriptor >= firstUnknown && isInheritable(descriptor));
}

function close(descriptor: number): void {
  try {
    closeSync(descriptor);
  } catch (error) {
    // Whoever had it open, such as a thread of the runtime that read a file of /proc, has closed it
    // already.
    if ((error as NodeJS.ErrnoException).code !== "EBADF") throw error;
  }
}

function isInheritable(descriptor: number): boolean {
  try {
    const info = readFileSync(`/proc/self/fdinfo/${descriptor}`, "utf8");
    const flags = /^flags:\s*([0-7]+)$/m.exec(info)?.[1];
    return flags !== undefined && (Number.parseInt(flags, 8) & closeOnExec) === 0;
  } catch {
    // The descriptor of the directory listing itself is closed already.
    return false;
  }
}
