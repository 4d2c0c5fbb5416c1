/**
 * Paths of the host that every sandbox has.
 */
import { sep } from "node:path";

/** Whether every sandbox has this path anyway. */
export function isSystemPath(path: string): boolean {
  return ["/usr", "/bin", "/lib", "/lib64"].some(
    (root) => path === root || path.startsWith(root + sep),
  );
}
