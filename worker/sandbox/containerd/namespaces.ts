/**
 * The containerd namespace of this worker, and those of dead workers.
 */
import type { BackendOptions } from "../sandbox.ts";
import { isDeadOwner } from "../work/dead-owners.ts";
import type { ContainerdClient } from "./client.ts";

/** Label with the worker's directory, by which others see whether it lives. */
const directoryLabel = "secure-tool-runtime.directory";

/** Removes the namespaces of dead workers, with their containers. */
export async function removeDead(
  client: ContainerdClient,
  options: Pick<BackendOptions, "workBase" | "basesBelow" | "onRemoveFailed">,
  signal: AbortSignal,
): Promise<void> {
  const lines = (await client.ask(["namespaces", "list"], signal)).split("\n").slice(1);
  for (const line of lines) {
    const [namespace = "", labels = ""] = line.split(/\s+/, 2);
    const directory = labels
      .split(",")
      .find((label) => label.startsWith(`${directoryLabel}=`))
      ?.slice(directoryLabel.length + 1);
    if (directory === undefined || !(await isDeadOwner(directory, options))) continue;
    await client.in(namespace).removeAll().catch(options.onRemoveFailed);
  }
}

/** Makes the namespace of a worker. Throws SandboxError. */
export async function makeNamespace(
  client: ContainerdClient,
  root: string,
  signal: AbortSignal,
): Promise<void> {
  await client.ask(["namespaces", "create", client.namespace, `${directoryLabel}=${root}`], signal);
}
