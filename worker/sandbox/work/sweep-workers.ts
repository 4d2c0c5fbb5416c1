/**
 * Sweeps the directories and sandboxes of dead workers below a shared base.
 */
import { opendir } from "node:fs/promises";
import { join } from "node:path";
import { endOrphans, ownerTag } from "../orphans.ts";
import { isInUse } from "../../support/files/liveness.ts";
import type { TreeRemover } from "./tree-remover.ts";

/** Names of workers' directories; a sweep of a shared base touches no others. */
export const workerPrefix = "worker-";
const workerName = /^worker-[0-9a-f]{24}$/;

/** Ends sandboxes of dead workers, and removes their directories in `base`. */
export async function sweepWorkers(
  base: string,
  remover: TreeRemover,
  onRemoveFailed: (error: unknown) => void,
): Promise<void> {
  for await (const entry of await opendir(base)) {
    if (!entry.isDirectory() || !workerName.test(entry.name)) continue;
    const path = join(base, entry.name);
    if (await isInUse(path)) continue;
    await endOrphans(ownerTag(entry.name))
      .then(() => remover.remove(path))
      .catch(onRemoveFailed);
  }
}
