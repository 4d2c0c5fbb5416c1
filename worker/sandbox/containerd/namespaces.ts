/**
 * The containerd namespace of this worker, and those of dead workers.
 */
import { dirname } from "node:path";
import { isInUse } from "../../support/files/liveness.ts";
import type { ContainerdClient } from "./client.ts";

/** Label with the worker's directory, by which others see whether it lives. */
const directoryLabel = "secure-tool-runtime.directory";

/** Removes namespaces of dead workers whose directories were beside `root`, with containers. */
export async function removeDead(
  client: ContainerdClient,
  root: string,
  onRemoveFailed: (error: unknown) => void,
  signal: AbortSignal,
): Promise<void> {
  const lines = (await client.ask(["namespaces", "list"], signal)).split("\n").slice(1);
  for (const line of lines) {
    const [namespace = "", labels = ""] = line.split(/\s+/, 2);
    const directory = labels
      .split(",")
      .find((label) => label.startsWith(`${directoryLabel}=`))
      ?.slice(directoryLabel.length + 1);
    // A worker of another base may live where this one cannot see it.
    if (directory === undefined || dirname(directory) !== dirname(root)) continue;
    if (directory === root || (await isInUse(directory))) continue;
    await client.in(namespace).removeAll().catch(onRemoveFailed);
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
