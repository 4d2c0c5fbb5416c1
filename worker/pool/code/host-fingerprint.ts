/**
 * A fingerprint of the mounts and devices that a tool has of the host.
 */
import { stat } from "node:fs/promises";
import type { ToolEntry } from "../../manifest/manifest.ts";
import type { HostAccess } from "../../sandbox/host-access.ts";

/**
 * Differs when a mount or device is another file. The content of a mounted directory does not
 * count: sandboxes see it as it is. Undefined without any. Throws NotGrantedError.
 */
export async function hostFingerprint(
  hostAccess: Pick<HostAccess, "grant">,
  { mounts, devices }: Pick<ToolEntry, "mounts" | "devices">,
): Promise<string | undefined> {
  if (mounts.length + devices.length === 0) return undefined;
  const granted = await hostAccess.grant({ mounts, devices });
  const sources = [...granted.mounts, ...granted.devices].map(({ source }) => source);
  return (await Promise.all(sources.map(identityOf))).join("\n");
}

/** A written file counts as another one: the tool may have read it already. Total. */
async function identityOf(path: string): Promise<string> {
  const stats = await stat(path, { bigint: true }).catch(() => undefined);
  if (stats === undefined) return path;
  const content = stats.isFile() ? [stats.mtimeNs, stats.size] : [];
  return [path, stats.dev, stats.ino, ...content].join(" ");
}
