/**
 * Closes inherited descriptors of this process.
 */
import { closeSync, readFileSync, readdirSync } from "node:fs";

/** O_CLOEXEC in /proc, in octal (proc_pid_fdinfo(5), open(2)). */
const closeOnExec = 0o2000000;
const firstUnknown = 3;

/**
 * Closes each inheritable descriptor above stderr, such as a CI runner's pipe. Node sets
 * close-on-exec on its own. Call before any other code opens descriptors.
 */
export function closeInheritedDescriptors(): void {
  for (const descriptor of inheritableDescriptors()) close(descriptor);
}

/** Inheritable descriptors above stderr. */
export function inheritableDescriptors(): readonly number[] {
  return readdirSync("/proc/self/fd")
    .map(Number)
    .filter((descriptor) => descriptor >= firstUnknown && isInheritable(descriptor));
}

function close(descriptor: number): void {
  try {
    closeSync(descriptor);
  } catch (error) {
    // Another thread of the runtime has closed it.
    if ((error as NodeJS.ErrnoException).code !== "EBADF") throw error;
  }
}

function isInheritable(descriptor: number): boolean {
  try {
    const info = readFileSync(`/proc/self/fdinfo/${descriptor}`, "utf8");
    const flags = /^flags:\s*([0-7]+)$/m.exec(info)?.[1];
    return flags !== undefined && (Number.parseInt(flags, 8) & closeOnExec) === 0;
  } catch {
    // The descriptor of the listing itself is closed.
    return false;
  }
}
