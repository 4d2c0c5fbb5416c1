/**
 * Owners of containers, which a daemon keeps when their owner is killed. Each container is labelled
 * with the directory of its owner, which has a liveness socket.
 */
import { dirname, sep } from "node:path";
import { isInUse } from "../../support/files/liveness.ts";
import type { BackendOptions } from "../sandbox.ts";

/**
 * Whether what a directory's owner left may be removed: its work base is one of these options, and
 * it is dead. An owner with another base may live where this process cannot see it.
 */
export async function isDeadOwner(
  directory: string,
  { workBase, basesBelow }: Pick<BackendOptions, "workBase" | "basesBelow">,
): Promise<boolean> {
  const base = dirname(directory);
  const isKin =
    base === workBase || (basesBelow !== undefined && base.startsWith(basesBelow + sep));
  return isKin && !(await isInUse(directory));
}
