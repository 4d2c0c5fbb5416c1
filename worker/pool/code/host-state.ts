/**
 * What a tool has of the host, so that a sandbox which was made before can be told from one that
 * would be made now.
 */
import { stat } from "node:fs/promises";
import type { ToolEntry } from "../../manifest/manifest.ts";
import type { HostAccess } from "../../sandbox/host-access.ts";

/**
 * A text that changes when a mount or a device of the tool is another file than before, or
 * undefined for a tool that has none. What a mounted directory holds does not count: sandboxes see
 * that as it is. Throws NotGrantedError.
 */
export async function hostState(
  hostAccess: Pick<HostAccess, "grant">,
  { mounts, devices }: Pick<ToolEntry, "mounts" | "devices">,
): Promise<string | undefined> {
  if (mounts.length + devices.length === 0) return undefined;
  const granted = await hostAccess.grant({ mounts, devices });
  const sources = [...granted.mounts, ...granted.devices].map(({ source }) => source);
  return (await Promise.all(sources.map(identityOf))).join("\n");
}

/** A file that was written since counts as another one, since the tool may have read it already. */
async function identityOf(path: string): Promise<string> {
  const stats = await stat(path, { bigint: true });
  const content = stats.isFile() ? [stats.mtimeNs, stats.size] : [];
  return [path, stats.dev, stats.ino, ...content].join(" ");
}
